// Over a cache a tile of queries has all heads that share keys. With many heads
// it has fewer queries, so that shared memory has room for it: with five heads of
// 64 in f32 64 where a block may take 227 KiB, 16 where it may take 99.
//
// RUN: hybrid-opt %s --pass-pipeline='builtin.module(hybrid-expand-stack,hybrid-build-graph,hybrid-fuse-rowwise)' -o %t.graph.mlir
// RUN: hybrid-opt %t.graph.mlir --pass-pipeline='builtin.module(hybrid-schedule{target=cuda:sm_90a})' -o %t.wide.mlir
// RUN: hybrid-opt %t.graph.mlir --pass-pipeline='builtin.module(hybrid-schedule{target=cuda:sm_89})' -o %t.narrow.mlir
// RUN: FileCheck %s --check-prefix=WIDE < %t.wide.mlir
// RUN: FileCheck %s --check-prefix=NARROW < %t.narrow.mlir
// RUN: tile-against-oracle %t.narrow.mlir --definitions=%t.graph.mlir --entries=extend --lengths=9,0,17 --positions=30,3,9 --context=40 --tolerance=1e-5 | FileCheck %s --check-prefix=EQUAL
// RUN: hybrid-opt %t.narrow.mlir -hybrid-nvptx-lower-programs=chip=sm_89 -o /dev/null
// RUN: not hybrid-opt %t.wide.mlir -hybrid-nvptx-lower-programs=chip=sm_89 -o /dev/null 2>&1 | FileCheck %s --check-prefix=MUCH
// MUCH: error: a kernel needs 134272 bytes of shared memory, a block of sm_89 has at most 101376
// EQUAL: @extend result 0: equal
// EQUAL-NOT: differs

// WIDE: tile.program @softmax_cached
// WIDE: tile.load {{.*}} tensor<64x5x64xf32>
// NARROW: tile.program @softmax_cached
// NARROW: tile.load {{.*}} tensor<16x5x64xf32>
hybrid.model @grouped vocab(8) width(16) layers(1) trained(16) {
  hybrid.softmax heads(5) kv_heads(1) head_dim(64) position(nope)
}
