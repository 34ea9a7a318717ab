// What was joined, what was not, and why.
// RUN: hybrid-opt %s -hybrid-fuse-rowwise -remarks-filter=fuse -remark-format=emitRemark 2>&1 | FileCheck %s

!x = tensor<?x8xf32>

func.func @chain(%x: !x, %w: tensor<8xf32>) -> !x attributes {hybrid.entry = "e"} {
  // CHECK: remarks.mlir:[[@LINE+1]]:{{.*}} [Passed] HYB-F101 {{.*}} Reason="each operand is loaded once", Remark="joined normalize, mul"
  %0 = hybrid.normalize rms %x epsilon 1.000000e-05 : !x
  %1 = hybrid.mul %0, %w : !x, tensor<8xf32>
  return %1 : !x
}

func.func @cycle(%x: !x, %w: tensor<8x8xf32>) -> !x attributes {hybrid.entry = "e"} {
  // CHECK: remarks.mlir:[[@LINE+1]]:{{.*}} [Missed] HYB-F201 {{.*}} Reason="no neighbour is row-wise", Remark="silu is alone"
  %0 = hybrid.silu %x : !x
  %1 = hybrid.product %0, %w : (!x, tensor<8x8xf32>) -> !x
  // CHECK: remarks.mlir:[[@LINE+1]]:{{.*}} [Missed] HYB-F202 {{.*}} Reason="product stands between and is not row-wise", Remark="add did not join silu"
  %2 = hybrid.add %0, %1 : !x, !x
  return %2 : !x
}
