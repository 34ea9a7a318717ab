// In an entry with a state a call may be a step of a few rows: that keeps its
// launches, and calls whose rows fill the processors with tiles fold.
// RUN: hybrid-opt %s -pass-pipeline='builtin.module(hybrid-schedule{target=cuda:sm_90a},tile.program(hybrid-narrow-products))' -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tile-against-oracle %t.mlir --definitions=%s --lengths=1,10 --f32 --rms --tolerance=0.008 | FileCheck %s --check-prefix=EQUAL

// EQUAL-COUNT-2: equal
// EQUAL-NOT:     differs

// CHECK:       #[[FEW:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s0 + 16768 >= 0)>
// CHECK-LABEL: func.func @extend
// CHECK:         %[[R:.*]]:2 = hybrid.alternatives [#[[FEW]]]
// CHECK:           hybrid.dispatch @row_products_{{[0-9a-f]+}}(%arg0, %arg1, %arg2)
// CHECK:           hybrid.dispatch @row_products_{{[0-9a-f]+}}({{.*}}, %arg3)
// CHECK:           %[[H:.*]] = hybrid.dispatch @product_{{[0-9a-f]+}}(%{{.*}}#1, %arg1, %arg2)
// CHECK-NEXT:      hybrid.alternatives
// CHECK:             hybrid.dispatch @product_{{[0-9a-f]+}}(%[[H]], %arg3)
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @extend(%x: tensor<?x72xbf16>, %wg: tensor<128x72xbf16>, %wu: tensor<128x72xbf16>, %wd: tensor<72x128xbf16>,
                  %state: tensor<?x4xf32, #hybrid.slots> {hybrid.role = "state"})
    -> (tensor<?x72xbf16>, tensor<?x72xbf16>) attributes {hybrid.entry = "extend"} {
  %n:2 = hybrid.rowwise (%a = %x : tensor<?x72xbf16>) -> (tensor<?x72xbf16>, tensor<?x72xbf16>) {
    %1 = hybrid.cast %a : tensor<?x72xbf16> to tensor<?x72xf32>
    %2 = hybrid.scale %1 by 2.000000e+00 : tensor<?x72xf32>
    %3 = hybrid.normalize rms %2 epsilon 1.0e-05 : tensor<?x72xf32>
    %4 = hybrid.cast %2 : tensor<?x72xf32> to tensor<?x72xbf16>
    %5 = hybrid.cast %3 : tensor<?x72xf32> to tensor<?x72xbf16>
    hybrid.yield %4, %5 : tensor<?x72xbf16>, tensor<?x72xbf16>
  }
  %g = hybrid.product %n#1, %wg transpose_b : (tensor<?x72xbf16>, tensor<128x72xbf16>) -> tensor<?x128xbf16>
  %u = hybrid.product %n#1, %wu transpose_b : (tensor<?x72xbf16>, tensor<128x72xbf16>) -> tensor<?x128xbf16>
  %h = hybrid.rowwise (%a = %g : tensor<?x128xbf16>, %b = %u : tensor<?x128xbf16>) -> tensor<?x128xbf16> {
    %1 = hybrid.cast %a : tensor<?x128xbf16> to tensor<?x128xf32>
    %2 = hybrid.silu %1 : tensor<?x128xf32>
    %3 = hybrid.cast %b : tensor<?x128xbf16> to tensor<?x128xf32>
    %4 = hybrid.mul %2, %3 : tensor<?x128xf32>, tensor<?x128xf32>
    %5 = hybrid.cast %4 : tensor<?x128xf32> to tensor<?x128xbf16>
    hybrid.yield %5 : tensor<?x128xbf16>
  }
  %y = hybrid.product %h, %wd transpose_b : (tensor<?x128xbf16>, tensor<72x128xbf16>) -> tensor<?x72xbf16>
  return %n#0, %y : tensor<?x72xbf16>, tensor<?x72xbf16>
}
