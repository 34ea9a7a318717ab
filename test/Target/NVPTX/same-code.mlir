// Every run gives the same code: nothing follows the addresses of its objects.
// A step of attention finishes cosines and sines in front of its wait.
// RUN: hybrid-opt %s --pass-pipeline='builtin.module(hybrid-expand-stack,hybrid-build-graph,hybrid-fuse-rowwise,hybrid-schedule{target=cuda:sm_90a})' -o %t.tile.mlir
// RUN: hybrid-opt %t.tile.mlir -hybrid-nvptx-lower-programs -o %t.once
// RUN: hybrid-opt %t.tile.mlir -hybrid-nvptx-lower-programs -o %t.again
// RUN: cmp %t.once %t.again
// RUN: FileCheck %s < %t.once
// CHECK: @softmax_step
// CHECK: "mov.b32 $0, $1;"
// CHECK: griddepcontrol.wait
hybrid.model @m vocab(16) width(16) layers(1) dtype(bf16) {
  hybrid.softmax heads(1) head_dim(16) position(rope)
}
