// Heads of 256 in f32 have fewer queries a tile where a block has 99 KiB of shared
// memory: 32 forward, where 64 would take 256 bytes too many, and 16 in the
// backward.
//
// RUN: hybrid-opt %s --pass-pipeline='builtin.module(hybrid-expand-stack,hybrid-build-graph,hybrid-differentiate,hybrid-fuse-rowwise)' -o %t.graph.mlir
// RUN: hybrid-opt %t.graph.mlir --pass-pipeline='builtin.module(hybrid-schedule{target=cuda:sm_89})' -o %t.tile.mlir
// RUN: FileCheck %s < %t.tile.mlir
// RUN: hybrid-opt %t.tile.mlir -hybrid-nvptx-lower-programs=chip=sm_89 -o /dev/null
// RUN: tile-against-oracle %t.tile.mlir --definitions=%t.graph.mlir --entries=backward --lengths=0,1,40 --context=40 --tolerance=1e-5 | FileCheck %s --check-prefix=EQUAL
// EQUAL: @backward result 0: equal
// EQUAL-NOT: differs

// CHECK: tile.program @softmax_forward
// CHECK: tile.load {{.*}} tensor<32x256xf32>
// CHECK: tile.program @softmax_backward_keys
// CHECK: tile.load {{.*}} tensor<16x256xf32>
hybrid.model @wide vocab(8) width(16) layers(1) trained(16) {
  hybrid.softmax heads(1) head_dim(256) position(nope)
}
