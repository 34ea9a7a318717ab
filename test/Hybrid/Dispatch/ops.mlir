// RUN: hybrid-opt %s | hybrid-opt | FileCheck %s

#few = affine_set<()[tokens, segments, longest, slots, context, depth]
                  : (4 - tokens >= 0)>

// These stand for tile programs: only the symbols matter here.
func.func private @product()
func.func private @product_rows()
func.func private @weight_gradient()

// CHECK-LABEL: func.func @workspace
func.func @workspace(%a: tensor<?x64xf32>, %b: tensor<32x64xf32>) -> tensor<?x32xf32> {
  // CHECK: %[[C:.*]]:2 = hybrid.dispatch @product(%{{.*}}, %{{.*}}) :
  %c:2 = hybrid.dispatch @product(%a, %b)
      : (tensor<?x64xf32>, tensor<32x64xf32>) -> (tensor<?x32xf32>, tensor<8xf32>)
  // CHECK: return %[[C]]#0
  return %c#0 : tensor<?x32xf32>
}

// CHECK-LABEL: func.func @tied
func.func @tied(%dy: tensor<?x32xf32>, %x: tensor<?x64xf32>, %w0: tensor<32x64xf32>) -> tensor<32x64xf32> {
  // CHECK: hybrid.dispatch @weight_gradient(%{{.*}}, %{{.*}}, %{{.*}}) ties = [0, 2] :
  %w1 = hybrid.dispatch @weight_gradient(%dy, %x, %w0) ties = [0, 2]
      : (tensor<?x32xf32>, tensor<?x64xf32>, tensor<32x64xf32>)
        -> tensor<32x64xf32>
  return %w1 : tensor<32x64xf32>
}

// The product itself, added to an input, and with the sums of ranges of its depth
// made in front.
// CHECK-LABEL: func.func @plain_products
func.func @plain_products(%x: tensor<?x64xf32>, %w: tensor<32x64xf32>, %dy: tensor<?x32xf32>,
                          %w0: tensor<32x64xf32>) -> (tensor<?x32xf32>, tensor<32x64xf32>) {
  // CHECK: product(#hybrid.plain_product<transpose_b = true>) :
  %y = hybrid.dispatch @product(%x, %w) product(#hybrid.plain_product<transpose_b = true>)
      : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
  // CHECK: ties = [0, 2] product(#hybrid.plain_product<transpose_a = true>) :
  %w1 = hybrid.dispatch @weight_gradient(%dy, %x, %w0) ties = [0, 2]
      product(#hybrid.plain_product<transpose_a = true>)
      : (tensor<?x32xf32>, tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  %parts = hybrid.dispatch @weight_gradient(%dy, %x)
      : (tensor<?x32xf32>, tensor<?x64xf32>) -> tensor<4x32x64xf32>
  // CHECK: ties = [0, 1] product(#hybrid.plain_product<transpose_a = true, parts = true>) :
  %w2 = hybrid.dispatch @weight_gradient(%parts, %w1) ties = [0, 1]
      product(#hybrid.plain_product<transpose_a = true, parts = true>)
      : (tensor<4x32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  // CHECK: product(#hybrid.plain_product) :
  %z = hybrid.dispatch @product(%dy, %w2) product(#hybrid.plain_product)
      : (tensor<?x32xf32>, tensor<32x64xf32>) -> tensor<?x64xf32>
  return %y, %w2 : tensor<?x32xf32>, tensor<32x64xf32>
}

// CHECK-LABEL: func.func @guarded
func.func @guarded(%a: tensor<?x64xf32>, %b: tensor<32x64xf32>) -> tensor<?x32xf32> {
  // CHECK: %[[C:.*]] = hybrid.alternatives [#set] -> tensor<?x32xf32> {
  // CHECK:   hybrid.yield
  // CHECK: }, {
  // CHECK:   hybrid.yield
  // CHECK: }
  %c = hybrid.alternatives [#few] -> tensor<?x32xf32> {
    %0 = hybrid.dispatch @product_rows(%a, %b)
        : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
    hybrid.yield %0 : tensor<?x32xf32>
  }, {
    %0 = hybrid.dispatch @product(%a, %b)
        : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
    hybrid.yield %0 : tensor<?x32xf32>
  }
  return %c : tensor<?x32xf32>
}

// CHECK-LABEL: func.func @pieces
func.func @pieces(%x: tensor<?x64xf32>, %dy: tensor<?x32xf32>, %w: tensor<32x64xf32>,
                  %dw0: tensor<32x64xf32>) -> (tensor<?x32xf32>, tensor<32x64xf32>) {
  // CHECK: %[[R:.*]]:2 = hybrid.pieces of 256 rows(%arg0, %arg1) sums(%arg3) :
  // CHECK-NEXT: ^bb0(%{{.*}}: tensor<?x64xf32>, %{{.*}}: tensor<?x32xf32>, %{{.*}}: tensor<32x64xf32>):
  // CHECK:   hybrid.yield %{{.*}}, %{{.*}} : tensor<?x32xf32>, tensor<32x64xf32>
  %y, %dw = hybrid.pieces of 256 rows(%x, %dy) sums(%dw0)
      : (tensor<?x64xf32>, tensor<?x32xf32>, tensor<32x64xf32>)
        -> (tensor<?x32xf32>, tensor<32x64xf32>) {
  ^bb0(%xp: tensor<?x64xf32>, %dyp: tensor<?x32xf32>, %sum: tensor<32x64xf32>):
    %0 = hybrid.dispatch @product(%xp, %w)
        : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
    %1 = hybrid.dispatch @weight_gradient(%dyp, %xp, %sum) ties = [0, 2]
        : (tensor<?x32xf32>, tensor<?x64xf32>, tensor<32x64xf32>)
          -> tensor<32x64xf32>
    hybrid.yield %0, %1 : tensor<?x32xf32>, tensor<32x64xf32>
  }
  // CHECK: return %[[R]]#0, %[[R]]#1
  return %y, %dw : tensor<?x32xf32>, tensor<32x64xf32>
}

// Without sums.
// CHECK-LABEL: func.func @rows_alone
func.func @rows_alone(%x: tensor<?x64xf32>, %w: tensor<32x64xf32>) -> tensor<?x32xf32> {
  // CHECK: hybrid.pieces of 1 rows(%arg0) : (tensor<?x64xf32>) -> tensor<?x32xf32> {
  %y = hybrid.pieces of 1 rows(%x) : (tensor<?x64xf32>) -> tensor<?x32xf32> {
  ^bb0(%xp: tensor<?x64xf32>):
    %0 = hybrid.dispatch @product(%xp, %w)
        : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
    hybrid.yield %0 : tensor<?x32xf32>
  }
  return %y : tensor<?x32xf32>
}
