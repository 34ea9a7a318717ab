// Row-wise operations that products take onto their sums, beside the oracle.
// RUN: hybrid-opt %s -pass-pipeline='builtin.module(hybrid-schedule{target=cuda:sm_90a},tile.program(hybrid-narrow-products))' -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tile-against-oracle %t.mlir --definitions=%s --lengths=1,100 --f32 --rms --tolerance=0.005 | FileCheck %s --check-prefix=EQUAL

// RUN: hybrid-opt %s -pass-pipeline='builtin.module(hybrid-schedule{target=cuda:sm_90a epilogues=false})' | FileCheck %s --check-prefix=OFF
// RUN: hybrid-opt %s -pass-pipeline='builtin.module(hybrid-schedule{target=cuda:sm_80})' | FileCheck %s --check-prefix=OFF
// OFF-NOT: product_1

// EQUAL-COUNT-9: equal
// EQUAL-NOT:     differs

// Two products whose sums share the registers of a tile; in training both are
// stored too.

// CHECK-LABEL: func.func @swiglu
// CHECK-NEXT:    hybrid.dispatch @[[SWIGLU:product_[0-9a-f]+]](%arg0, %arg1, %arg2) : {{.*}} -> tensor<?x192xbf16>
// CHECK-NEXT:    return
func.func @swiglu(%x: tensor<?x72xbf16>, %wg: tensor<192x72xbf16>, %wu: tensor<192x72xbf16>)
    -> tensor<?x192xbf16> attributes {hybrid.entry = "swiglu"} {
  %g = hybrid.product %x, %wg transpose_b : (tensor<?x72xbf16>, tensor<192x72xbf16>) -> tensor<?x192xbf16>
  %u = hybrid.product %x, %wu transpose_b : (tensor<?x72xbf16>, tensor<192x72xbf16>) -> tensor<?x192xbf16>
  %h = hybrid.rowwise (%a = %g : tensor<?x192xbf16>, %b = %u : tensor<?x192xbf16>) -> tensor<?x192xbf16> {
    %1 = hybrid.cast %a : tensor<?x192xbf16> to tensor<?x192xf32>
    %2 = hybrid.silu %1 : tensor<?x192xf32>
    %3 = hybrid.cast %b : tensor<?x192xbf16> to tensor<?x192xf32>
    %4 = hybrid.mul %2, %3 : tensor<?x192xf32>, tensor<?x192xf32>
    %5 = hybrid.cast %4 : tensor<?x192xf32> to tensor<?x192xbf16>
    hybrid.yield %5 : tensor<?x192xbf16>
  }
  return %h : tensor<?x192xbf16>
}

// CHECK-LABEL: func.func @kept
// CHECK-NEXT:    %[[R:.*]]:2 = hybrid.dispatch @product_{{[0-9a-f]+}}(%arg0, %arg1) : {{.*}} -> (tensor<?x192xbf16>, tensor<?x192xbf16>)
// CHECK-NEXT:    return %[[R]]#0, %[[R]]#1
func.func @kept(%x: tensor<?x72xbf16>, %w: tensor<192x72xbf16>)
    -> (tensor<?x192xbf16>, tensor<?x192xbf16>) attributes {hybrid.entry = "kept"} {
  %y = hybrid.product %x, %w transpose_b : (tensor<?x72xbf16>, tensor<192x72xbf16>) -> tensor<?x192xbf16>
  %s = hybrid.rowwise (%a = %y : tensor<?x192xbf16>) -> tensor<?x192xbf16> {
    %1 = hybrid.cast %a : tensor<?x192xbf16> to tensor<?x192xf32>
    %2 = hybrid.scale %1 by 3.000000e+00 : tensor<?x192xf32>
    %3 = hybrid.cast %2 : tensor<?x192xf32> to tensor<?x192xbf16>
    hybrid.yield %3 : tensor<?x192xbf16>
  }
  return %s, %y : tensor<?x192xbf16>, tensor<?x192xbf16>
}

// Heads of 64 lie in tiles of 192 columns; what is around them is views.

// CHECK-LABEL: func.func @rotary
// CHECK-NEXT:    %[[Q:.*]] = hybrid.dispatch @product_{{[0-9a-f]+}}(%arg0, %arg1, %arg2) : (tensor<?x72xbf16>, tensor<192x72xbf16>, !hybrid.segments) -> tensor<?x192xbf16>
// CHECK-NEXT:    %[[HEADS:.*]] = hybrid.reshape %[[Q]]
// CHECK-NEXT:    return %[[HEADS]]
func.func @rotary(%x: tensor<?x72xbf16>, %w: tensor<192x72xbf16>, %s: !hybrid.segments)
    -> tensor<?x3x64xbf16> attributes {hybrid.entry = "rotary"} {
  %y = hybrid.product %x, %w transpose_b : (tensor<?x72xbf16>, tensor<192x72xbf16>) -> tensor<?x192xbf16>
  %heads = hybrid.reshape %y : tensor<?x192xbf16> -> tensor<?x3x64xbf16>
  %q = hybrid.rowwise (%a = %heads : tensor<?x3x64xbf16>, %b = %s : !hybrid.segments) -> tensor<?x3x64xbf16> {
    %1 = hybrid.cast %a : tensor<?x3x64xbf16> to tensor<?x3x64xf32>
    %2 = hybrid.rotary %1, %b base 1.000000e+04 dim 64 : tensor<?x3x64xf32>
    %3 = hybrid.cast %2 : tensor<?x3x64xf32> to tensor<?x3x64xbf16>
    hybrid.yield %3 : tensor<?x3x64xbf16>
  }
  return %q : tensor<?x3x64xbf16>
}

// The sum in front of a norm, which needs whole rows and reads the result.

// CHECK-LABEL: func.func @residual
// CHECK-NEXT:    %[[SUM:.*]] = hybrid.dispatch @product_{{[0-9a-f]+}}(%arg0, %arg1, %arg2)
// CHECK-NEXT:    %[[NORM:.*]] = hybrid.dispatch @rowwise_{{[0-9a-f]+}}(%[[SUM]])
// CHECK-NEXT:    return %[[SUM]], %[[NORM]]
func.func @residual(%x: tensor<?x72xbf16>, %w: tensor<192x72xbf16>, %old: tensor<?x192xbf16>)
    -> (tensor<?x192xbf16>, tensor<?x192xbf16>) attributes {hybrid.entry = "residual"} {
  %y = hybrid.product %x, %w transpose_b : (tensor<?x72xbf16>, tensor<192x72xbf16>) -> tensor<?x192xbf16>
  %r:2 = hybrid.rowwise (%a = %old : tensor<?x192xbf16>, %b = %y : tensor<?x192xbf16>) -> (tensor<?x192xbf16>, tensor<?x192xbf16>) {
    %1 = hybrid.cast %a : tensor<?x192xbf16> to tensor<?x192xf32>
    %2 = hybrid.cast %b : tensor<?x192xbf16> to tensor<?x192xf32>
    %3 = hybrid.add %1, %2 : tensor<?x192xf32>, tensor<?x192xf32>
    %4 = hybrid.cast %3 : tensor<?x192xf32> to tensor<?x192xbf16>
    %5 = hybrid.cast %4 : tensor<?x192xbf16> to tensor<?x192xf32>
    %6 = hybrid.normalize rms %5 epsilon 1.0e-05 : tensor<?x192xf32>
    %7 = hybrid.cast %6 : tensor<?x192xf32> to tensor<?x192xbf16>
    hybrid.yield %4, %7 : tensor<?x192xbf16>, tensor<?x192xbf16>
  }
  return %r#0, %r#1 : tensor<?x192xbf16>, tensor<?x192xbf16>
}

// CHECK-LABEL: func.func @bias
// CHECK-NEXT:    %[[ROW:.*]] = hybrid.reshape %arg2 : tensor<192xf32> -> tensor<1x192xf32>
// CHECK-NEXT:    hybrid.dispatch @product_{{[0-9a-f]+}}(%arg0, %arg1, %[[ROW]])
// CHECK-NEXT:    return
func.func @bias(%x: tensor<?x72xbf16>, %w: tensor<192x72xbf16>, %bias: tensor<192xf32>)
    -> tensor<?x192xbf16> attributes {hybrid.entry = "bias"} {
  %y = hybrid.product %x, %w transpose_b : (tensor<?x72xbf16>, tensor<192x72xbf16>) -> tensor<?x192xbf16>
  %r = hybrid.rowwise (%a = %y : tensor<?x192xbf16>, %b = %bias : tensor<192xf32>) -> tensor<?x192xbf16> {
    %1 = hybrid.cast %a : tensor<?x192xbf16> to tensor<?x192xf32>
    %2 = hybrid.add %1, %b : tensor<?x192xf32>, tensor<192xf32>
    %3 = hybrid.cast %2 : tensor<?x192xf32> to tensor<?x192xbf16>
    hybrid.yield %3 : tensor<?x192xbf16>
  }
  return %r : tensor<?x192xbf16>
}

// The adjoint of SwiGLU reads as much as it saves and computes more: slower.

// CHECK-LABEL: func.func @slower
// CHECK-NEXT:    hybrid.dispatch @product_
// CHECK-NEXT:    hybrid.dispatch @rowwise_
func.func @slower(%dy: tensor<?x72xbf16>, %w: tensor<72x192xbf16>, %g: tensor<?x192xbf16>, %u: tensor<?x192xbf16>)
    -> (tensor<?x192xbf16>, tensor<?x192xbf16>) attributes {hybrid.entry = "slower"} {
  %y = hybrid.product %dy, %w : (tensor<?x72xbf16>, tensor<72x192xbf16>) -> tensor<?x192xbf16>
  %r:2 = hybrid.rowwise (%a = %y : tensor<?x192xbf16>, %b = %u : tensor<?x192xbf16>, %c = %g : tensor<?x192xbf16>) -> (tensor<?x192xbf16>, tensor<?x192xbf16>) {
    %1 = hybrid.cast %a : tensor<?x192xbf16> to tensor<?x192xf32>
    %2 = hybrid.cast %b : tensor<?x192xbf16> to tensor<?x192xf32>
    %3 = hybrid.mul %1, %2 : tensor<?x192xf32>, tensor<?x192xf32>
    %4 = hybrid.cast %c : tensor<?x192xbf16> to tensor<?x192xf32>
    %5 = hybrid.silu %4 : tensor<?x192xf32>
    %6 = hybrid.mul %1, %5 : tensor<?x192xf32>, tensor<?x192xf32>
    %7 = hybrid.cast %6 : tensor<?x192xf32> to tensor<?x192xbf16>
    %8 = hybrid.silu_grad %4, %3 : tensor<?x192xf32>
    %9 = hybrid.cast %8 : tensor<?x192xf32> to tensor<?x192xbf16>
    hybrid.yield %7, %9 : tensor<?x192xbf16>, tensor<?x192xbf16>
  }
  return %r#0, %r#1 : tensor<?x192xbf16>, tensor<?x192xbf16>
}

// The sums of both products, and the record that has them in flight.

// CHECK:       tile.program @[[SWIGLU]](
// CHECK:         %[[SUMS:.*]]:2 = scf.for
// CHECK:           tile.dot {{.*}}tile.name = "product", transpose_b
// CHECK:           tile.dot {{.*}}tile.name = "product_1", transpose_b
// CHECK:         %[[GATE:.*]] = arith.mulf %[[SUMS]]#0, %{{.*}} : tensor<128x64xf32>
// CHECK-NEXT:    %[[H:.*]] = arith.mulf %[[GATE]], %[[SUMS]]#1
// CHECK-NEXT:    %[[NARROW:.*]] = arith.truncf %[[H]]
// CHECK:         tile.store %[[NARROW]]
// CHECK:       tile.schedule @[[SWIGLU]] target("sm_90a")
// CHECK-SAME:    load_b_1 = {barrier = "mbarrier", buffers = 6 : i64, role = "load"}
// CHECK-SAME:    product_1 = {role = "multiply", wait = 1 : i64}
