// RUN: hybrid-opt %s | hybrid-opt | FileCheck %s

#few = affine_set<()[tokens, segments, longest, slots, context, depth]
                  : (4 - tokens >= 0)>

// Stands for a tile program: only the symbol matters here.
func.func private @product()

// CHECK-LABEL: func.func @workspace
func.func @workspace(%a: tensor<?x64xf32>, %b: tensor<32x64xf32>) -> tensor<?x32xf32> {
  // CHECK: %[[C:.*]]:2 = hybrid.dispatch @product(%{{.*}}, %{{.*}}) :
  %c:2 = hybrid.dispatch @product(%a, %b)
      : (tensor<?x64xf32>, tensor<32x64xf32>) -> (tensor<?x32xf32>, tensor<8xf32>)
  // CHECK: return %[[C]]#0
  return %c#0 : tensor<?x32xf32>
}

// CHECK-LABEL: func.func @tied
func.func @tied(%a: tensor<?x64xf32>, %g: tensor<32x64xf32>) -> tensor<32x64xf32> {
  // CHECK: hybrid.dispatch @product(%{{.*}}, %{{.*}}) ties = [0, 1] :
  %c = hybrid.dispatch @product(%a, %g) ties = [0, 1]
      : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  return %c : tensor<32x64xf32>
}

// CHECK-LABEL: func.func @guarded
func.func @guarded(%a: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // CHECK: %[[C:.*]] = hybrid.alternatives [#set] -> tensor<?x64xf32> {
  // CHECK:   hybrid.yield
  // CHECK: }, {
  // CHECK:   hybrid.yield
  // CHECK: }
  %c = hybrid.alternatives [#few] -> tensor<?x64xf32> {
    %0 = hybrid.dispatch @product(%a) : (tensor<?x64xf32>) -> tensor<?x64xf32>
    hybrid.yield %0 : tensor<?x64xf32>
  }, {
    %0 = hybrid.dispatch @product(%a) : (tensor<?x64xf32>) -> tensor<?x64xf32>
    hybrid.yield %0 : tensor<?x64xf32>
  }
  return %c : tensor<?x64xf32>
}
