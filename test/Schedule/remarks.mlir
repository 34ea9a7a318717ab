// RUN: hybridc %s --compile-to=schedule --remarks=schedule -o %t 2>&1 | FileCheck %s
// RUN: hybridc %s --compile-to=schedule --remarks=plan -o %t 2>&1 | count 0
// RUN: hybrid-opt %s --hybrid-schedule --remarks-filter=schedule --remark-format=emitRemark -o %t 2>&1 | FileCheck %s --check-prefix=OPT

// Every choice has an id that stays, the strategy, and the reason.

// CHECK: {{.*}}remark: [HYB-S401] layers.3.mixer.q_proj: blocks of 128 rows; reason: whole sequences
// CHECK: remark: [HYB-S303] one pass over the rows; reason: 1 operation fused
// OPT: HYB-S401 {{.*}}Reason="whole sequences"
func.func @extend_all(%x: tensor<?x64xf32>, %w: tensor<32x64xf32>) -> tensor<?x32xf32>
    attributes {hybrid.entry = "extend_all"} {
  %y = hybrid.product %x, %w transpose_b
      : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32> loc(#q_proj)
  %z = hybrid.silu %y : tensor<?x32xf32>
  return %z : tensor<?x32xf32>
}
#place = loc("remarks.mlir":17:3)
#q_proj = loc("layers.3.mixer.q_proj"(#place))
