// Every number of rows: none, less than a piece, whole pieces and a rest, over
// the bounds of segments. What comes out is what the definition says.
// RUN: hybrid-opt %s --hybrid-schedule=piece-rows=16 -o %t.cpu.mlir
// RUN: hybrid-opt %s --hybrid-schedule="target=cuda piece-rows=16" -o %t.cuda.mlir
// RUN: tile-against-oracle %t.cpu.mlir --definitions=%s --lengths=0 | FileCheck %s
// RUN: tile-against-oracle %t.cpu.mlir --definitions=%s --lengths=7 | FileCheck %s
// RUN: tile-against-oracle %t.cpu.mlir --definitions=%s --lengths=32 | FileCheck %s
// RUN: tile-against-oracle %t.cpu.mlir --definitions=%s --lengths=9,0,24,1 | FileCheck %s
// RUN: tile-against-oracle %t.cuda.mlir --definitions=%s --lengths=9,0,24,1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=CUT --input-file=%t.cpu.mlir

// CUT: hybrid.pieces of 16 rows
// CHECK: @backward result 0: equal
// CHECK: @backward result 1: equal
// CHECK: @backward result 2: equal
func.func @backward(%w: tensor<40x16xf32> {hybrid.role = "param", hybrid.path = "w"},
                    %x: tensor<?x16xf32> {hybrid.role = "input", hybrid.path = "x"},
                    %dw: tensor<40x16xf32> {hybrid.role = "gradient", hybrid.path = "w"},
                    %y: tensor<?xi32> {hybrid.role = "labels"},
                    %weights: tensor<?xf32> {hybrid.role = "weights"})
    -> (tensor<?xf32> {hybrid.role = "loss"},
        tensor<40x16xf32> {hybrid.role = "gradient", hybrid.path = "w"},
        tensor<?x16xf32> {hybrid.role = "output", hybrid.path = "dx"})
    attributes {hybrid.entry = "losses"} {
  %0 = hybrid.product %x, %w transpose_b : (tensor<?x16xf32>, tensor<40x16xf32>) -> tensor<?x40xf32>
  %1 = hybrid.cross_entropy %0, %y, %weights : (tensor<?x40xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>
  %2 = hybrid.cross_entropy_grad %0, %y, %weights : (tensor<?x40xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?x40xf32>
  %3 = hybrid.product %2, %w : (tensor<?x40xf32>, tensor<40x16xf32>) -> tensor<?x16xf32>
  %4 = hybrid.product %2, %x transpose_a : (tensor<?x40xf32>, tensor<?x16xf32>) -> tensor<40x16xf32>
  %5 = hybrid.add %dw, %4 : tensor<40x16xf32>, tensor<40x16xf32>
  return %1, %5, %3 : tensor<?xf32>, tensor<40x16xf32>, tensor<?x16xf32>
}
