// The pass driver knows both dialects of this project and the upstream ones.
// RUN: hybrid-opt --show-dialects | FileCheck %s

// CHECK-DAG: hybrid
// CHECK-DAG: tile
// CHECK-DAG: nvvm
module {}
