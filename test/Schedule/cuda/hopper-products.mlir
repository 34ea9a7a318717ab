// Products of 16-bit operands for sm_90a, with the records of their programs.
// RUN: hybrid-opt %s -split-input-file -pass-pipeline='builtin.module(hybrid-schedule{target=cuda:sm_90a})' | FileCheck %s
// RUN: hybrid-opt %s -split-input-file -pass-pipeline='builtin.module(hybrid-schedule{target=cuda:sm_90a hopper=false})' | FileCheck %s --check-prefix=OFF
// RUN: hybrid-opt %s -split-input-file -pass-pipeline='builtin.module(hybrid-schedule{target=cuda:sm_80})' | FileCheck %s --check-prefix=OFF
// OFF-NOT: tile.schedule

// y = x Wᵀ: both operands lie in rows.

// CHECK-LABEL: func.func @loss
// CHECK:         hybrid.dispatch @[[P:product_[0-9a-f]+]](
// CHECK:       tile.program @[[P]]({{.*}} grid #{{.*}} order
// CHECK:         scf.for
// CHECK-DAG:       %[[ROWS:.*]] = tile.dim %arg0, 0
// CHECK-DAG:       tile.load %arg0[{{.*}}] dims [0, 1] limit(%[[ROWS]]) {tile.name = "load_a"} : !tile.view<?x1024xbf16> -> tensor<128x64xbf16>
// CHECK-DAG:       tile.load %arg1[{{.*}}] dims [0, 1] {tile.name = "load_b"} : !tile.view<3584x1024xbf16> -> tensor<256x64xbf16>
// CHECK:           tile.dot {{.*}}tile.name = "product", transpose_b
// CHECK:       tile.schedule @[[P]] target("sm_90a")
// CHECK-SAME:    roles {load = {registers = 24 : i64, warpgroups = 1 : i64}, multiply = {registers = 240 : i64, warpgroups = 2 : i64}}
// CHECK-SAME:    load_a = {barrier = "mbarrier", buffers = 4 : i64, role = "load"}
// CHECK-SAME:    product = {role = "multiply", wait = 1 : i64}
// CHECK-SAME:    hopper.group = 16 : i64, hopper.persistent, hopper.traversal = array<i64: 1, 0>
func.func @loss(%x: tensor<?x1024xbf16>, %w: tensor<3584x1024xbf16>) -> tensor<?x3584xbf16>
    attributes {hybrid.entry = "loss"} {
  %y = hybrid.product %x, %w transpose_b
      : (tensor<?x1024xbf16>, tensor<3584x1024xbf16>) -> tensor<?x3584xbf16>
  return %y : tensor<?x3584xbf16>
}

// -----

// dx = dy W: the right operand lies in columns. Of 320 columns two tiles of
// 192 are less than two of 256; the last one is cut where the view ends.

// CHECK-LABEL: func.func @input_gradient
// CHECK:       tile.program
// CHECK:         %[[COLUMNS:.*]] = arith.constant 320 : index
// CHECK:         scf.for
// CHECK-DAG:       %[[DEPTH:.*]] = tile.dim %arg1, 0
// CHECK-DAG:       %[[END:.*]] = tile.dim %arg1, 1
// CHECK:           tile.load %arg1[{{.*}}] dims [0, 1] limit(%[[DEPTH]], %[[END]]) {tile.name = "load_b"} : !tile.view<1024x320xf16> -> tensor<64x192xf16>
// CHECK:         tile.store {{.*}} limit(%{{.*}}, %[[COLUMNS]])
// CHECK:       tile.schedule
func.func @input_gradient(%dy: tensor<?x1024xf16>, %w: tensor<1024x320xf16>) -> tensor<?x320xf16>
    attributes {hybrid.entry = "input_gradient"} {
  %y = hybrid.product %dy, %w
      : (tensor<?x1024xf16>, tensor<1024x320xf16>) -> tensor<?x320xf16>
  return %y : tensor<?x320xf16>
}

// -----

// dW = dyᵀ x: both operands lie in columns. 32 tiles, so the tokens are cut into
// four ranges.

// CHECK-LABEL: func.func @weight_gradient
// CHECK:         hybrid.dispatch @[[P:product_[0-9a-f]+]](
// CHECK:         hybrid.dispatch @product_sum_
// CHECK:       tile.program @[[P]](
// CHECK:         tile.load %arg0[{{.*}}] dims [0, 1] limit(%{{.*}}) {tile.name = "load_a"} : !tile.view<?x1024xbf16> -> tensor<64x128xbf16>
// CHECK:         tile.load %arg1[{{.*}}] dims [0, 1] limit(%{{.*}}) {tile.name = "load_b"} : !tile.view<?x1024xbf16> -> tensor<64x256xbf16>
// CHECK:         tile.dot {{.*}}transpose_a
// CHECK:       tile.schedule @[[P]] {{.*}} {hopper.group = 16 : i64, hopper.traversal = array<i64: 0, 2, 1>}
// CHECK:       tile.program @product_sum_
// CHECK:         tensor<16x128xf32>
// CHECK-NOT:   tile.schedule
func.func @weight_gradient(%dy: tensor<?x1024xbf16>, %x: tensor<?x1024xbf16>) -> tensor<1024x1024xf32>
    attributes {hybrid.entry = "weight_gradient"} {
  %y = hybrid.product %dy, %x transpose_a
      : (tensor<?x1024xbf16>, tensor<?x1024xbf16>) -> tensor<1024x1024xf32>
  return %y : tensor<1024x1024xf32>
}

// -----

// A program whose operand is a part of wider rows keeps its record under the
// new name.

// CHECK-LABEL: func.func @part
// CHECK:         hybrid.dispatch @[[P:product_[0-9a-f]+]](
// CHECK:       tile.program @[[P]](%{{.*}}: !tile.view<?x1024xbf16, strides = [?, 1]>,
// CHECK:       tile.schedule @[[P]]
func.func @part(%x: tensor<?x2048xbf16>, %w: tensor<256x1024xbf16>) -> tensor<?x256xbf16>
    attributes {hybrid.entry = "part"} {
  %a = hybrid.slice %x dim 1 from 1024 size 1024 : tensor<?x2048xbf16> -> tensor<?x1024xbf16>
  %y = hybrid.product %a, %w transpose_b
      : (tensor<?x1024xbf16>, tensor<256x1024xbf16>) -> tensor<?x256xbf16>
  return %y : tensor<?x256xbf16>
}

// -----

// With a state: the matrix read by rows, tiles of 64 x 64, of 128 x 128 and of
// 128 x 256, each until the next one fills the processors.

// CHECK-DAG: #[[MEDIUM:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s0 + 512 >= 0)>
// CHECK-DAG: #[[SQUARE:.*]] = affine_set<()[s0, s1, s2, s3, s4, s5] : (-s0 + 2048 >= 0)>
// CHECK-LABEL: func.func @extend
// CHECK:         hybrid.alternatives [#[[MEDIUM]]]
// CHECK:         hybrid.alternatives [#[[SQUARE]]]
// CHECK:           hybrid.dispatch @[[S:product_[0-9a-f]+]](
// CHECK:           hybrid.dispatch @[[W:product_[0-9a-f]+]](
// CHECK-DAG:   tile.schedule @[[S]] {{.*}}buffers = 6
// CHECK-DAG:   tile.schedule @[[W]] {{.*}}buffers = 4
func.func @extend(%x: tensor<?x1024xbf16>, %w: tensor<1024x1024xbf16>,
                  %s: tensor<?x4xf32, #hybrid.slots> {hybrid.role = "state"})
    -> tensor<?x1024xbf16> attributes {hybrid.entry = "extend"} {
  %y = hybrid.product %x, %w transpose_b
      : (tensor<?x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<?x1024xbf16>
  return %y : tensor<?x1024xbf16>
}

// -----

// What warpgroups do not multiply: f32, parts that begin between multiples of
// 16 bytes, matrices that do not fill a tile.

// CHECK-LABEL: func.func @others
// CHECK-NOT:   tile.schedule
func.func @others(%x: tensor<?x1024xf32>, %w: tensor<1024x1024xf32>,
                  %a: tensor<?x136xbf16>, %v: tensor<128x128xbf16>, %n: tensor<32x128xbf16>)
    -> (tensor<?x1024xf32>, tensor<?x128xbf16>, tensor<?x32xbf16>)
    attributes {hybrid.entry = "others"} {
  %y = hybrid.product %x, %w transpose_b
      : (tensor<?x1024xf32>, tensor<1024x1024xf32>) -> tensor<?x1024xf32>
  %p = hybrid.slice %a dim 1 from 4 size 128 : tensor<?x136xbf16> -> tensor<?x128xbf16>
  %z = hybrid.product %p, %v transpose_b
      : (tensor<?x128xbf16>, tensor<128x128xbf16>) -> tensor<?x128xbf16>
  %q = hybrid.slice %a dim 1 from 8 size 128 : tensor<?x136xbf16> -> tensor<?x128xbf16>
  %t = hybrid.product %q, %n transpose_b
      : (tensor<?x128xbf16>, tensor<32x128xbf16>) -> tensor<?x32xbf16>
  return %y, %z, %t : tensor<?x1024xf32>, tensor<?x128xbf16>, tensor<?x32xbf16>
}
