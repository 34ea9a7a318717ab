// Recurrences in bf16 with the roundings of the GPU's programs: the error is at
// most 0.005 forward and 0.008 backward, as root mean squares. A window, whose
// gradients are sums of several chains, is f32 until it is whole.
// RUN: hybrid-opt %s -pass-pipeline='builtin.module(hybrid-schedule{target=cuda},tile.program(hybrid-narrow-products))' -o %t.cuda.mlir
// RUN: tile-against-oracle %t.cuda.mlir --definitions=%s --entries=delta,channel,window --lengths=0,1,100 --f32 --rms --tolerance=0.005 | FileCheck %s --check-prefix=FORWARD
// RUN: tile-against-oracle %t.cuda.mlir --definitions=%s --entries=delta_grad,channel_grad,window_grad --lengths=0,1,100 --f32 --rms --tolerance=0.008 | FileCheck %s --check-prefix=BACKWARD
// Chunks as long as Hopper takes them.
// RUN: hybrid-opt %s -pass-pipeline='builtin.module(hybrid-schedule{target=cuda:sm_90a},tile.program(hybrid-narrow-products))' -o %t.hopper.mlir
// RUN: tile-against-oracle %t.hopper.mlir --definitions=%s --entries=delta --lengths=1,100 --f32 --rms --tolerance=0.005 | FileCheck %s --check-prefix=HOPPER-FORWARD
// RUN: tile-against-oracle %t.hopper.mlir --definitions=%s --entries=delta_grad --lengths=1,100 --f32 --rms --tolerance=0.008 | FileCheck %s --check-prefix=HOPPER-BACKWARD
// HOPPER-FORWARD-COUNT-1:  equal
// HOPPER-FORWARD-NOT:      differs
// HOPPER-BACKWARD-COUNT-5: equal
// HOPPER-BACKWARD-NOT:     differs
// FORWARD-COUNT-3: equal
// FORWARD-NOT:     differs
// BACKWARD-COUNT-12: equal
// BACKWARD-NOT:    differs

// Only the walks go from chunk to chunk.
// RUN: FileCheck %s --check-prefix=PHASES < %t.cuda.mlir
// PHASES-LABEL: func.func @delta(
// PHASES:         %[[P:.+]]:4 = hybrid.dispatch @recurrence_prepare_
// PHASES-SAME:      tensor<?x2x32x32xbf16, #hybrid.sized<{{.+}}>>
// PHASES:         %[[S:.+]]:2 = hybrid.dispatch @recurrence_walk_[[WALK:[0-9a-f]+]]({{.+}}%[[P]]#3)
// PHASES:         hybrid.dispatch @recurrence_outputs_{{[0-9a-f]+}}({{.+}}%[[S]]#0, %[[S]]#1)
// PHASES-LABEL: func.func @delta_grad(
// PHASES:         hybrid.dispatch @recurrence_backward_prepare_
// PHASES:         hybrid.dispatch @recurrence_walk_[[WALK]](
// PHASES:         hybrid.dispatch @recurrence_backward_walk_
// PHASES:         hybrid.dispatch @recurrence_backward_gradients_
// PHASES-LABEL: func.func @channel(
// PHASES:         %[[P:.+]]:3 = hybrid.dispatch @recurrence_prepare_
// PHASES:         %[[S:.+]] = hybrid.dispatch @recurrence_walk_{{[0-9a-f]+}}({{.+}}%[[P]]#2)
// PHASES:         hybrid.dispatch @recurrence_outputs_{{[0-9a-f]+}}({{.+}}%[[P]]#2, %[[S]])
// PHASES-LABEL: func.func @window(
// PHASES:         hybrid.dispatch @recurrence_forward_

// Turns of window chains add to f32 gradients, which are rounded once.
// RUN: FileCheck %s --check-prefix=PROGRAM < %t.cuda.mlir
// PROGRAM-LABEL: func.func @window_grad
// PROGRAM:         %[[B:.+]]:{{[0-9]+}} = hybrid.dispatch @recurrence_backward_{{.*}} -> (tensor<?x2x32xf32>, tensor<?x2x32xf32>, tensor<?x2x32xf32>,
// PROGRAM:         hybrid.dispatch @rowwise_{{.*}}(%[[B]]#0) : (tensor<?x2x32xf32>) -> tensor<?x2x32xbf16>

!x = tensor<?x2x32xbf16>
!g = tensor<?x2x1xf32>
!c = tensor<?x2x32xf32>
!b = tensor<?x2xf32>

func.func @delta(%q: !x {random.range = array<f64: -0.3, 0.3>}, %k: !x {random.range = array<f64: -0.3, 0.3>}, %v: !x, %s: !hybrid.segments,
                 %g: !g {random.range = array<f64: -0.2, 0.0>}, %b: !b {random.range = array<f64: 0.0, 1.0>})
    -> !x attributes {hybrid.entry = "delta"} {
  %o = hybrid.recurrence delta %q, %k, %v, %s decay(%g) beta(%b) scale 1.0
      : (!x, !x, !x, !hybrid.segments, !g, !b) -> !x
  return %o : !x
}
func.func @delta_grad(%q: !x {random.range = array<f64: -0.3, 0.3>}, %k: !x {random.range = array<f64: -0.3, 0.3>}, %v: !x, %s: !hybrid.segments, %d: !x,
                      %g: !g {random.range = array<f64: -0.2, 0.0>}, %b: !b {random.range = array<f64: 0.0, 1.0>})
    -> (!x, !x, !x, !g, !b) attributes {hybrid.entry = "delta_grad"} {
  %r:5 = hybrid.recurrence_grad delta %q, %k, %v, %s, %d decay(%g) beta(%b) scale 1.0
      : (!x, !x, !x, !hybrid.segments, !x, !g, !b) -> (!x, !x, !x, !g, !b)
  return %r#0, %r#1, %r#2, %r#3, %r#4 : !x, !x, !x, !g, !b
}
func.func @channel(%q: !x, %k: !x, %v: !x, %s: !hybrid.segments, %g: !c {random.range = array<f64: -0.2, 0.0>})
    -> !x attributes {hybrid.entry = "channel"} {
  %o = hybrid.recurrence additive %q, %k, %v, %s decay(%g) scale 1.0
      : (!x, !x, !x, !hybrid.segments, !c) -> !x
  return %o : !x
}
func.func @channel_grad(%q: !x, %k: !x, %v: !x, %s: !hybrid.segments, %d: !x, %g: !c {random.range = array<f64: -0.2, 0.0>})
    -> (!x, !x, !x, !c) attributes {hybrid.entry = "channel_grad"} {
  %r:4 = hybrid.recurrence_grad additive %q, %k, %v, %s, %d decay(%g) scale 1.0
      : (!x, !x, !x, !hybrid.segments, !x, !c) -> (!x, !x, !x, !c)
  return %r#0, %r#1, %r#2, %r#3 : !x, !x, !x, !c
}
func.func @window(%q: !x, %k: !x, %v: !x, %s: !hybrid.segments) -> !x attributes {hybrid.entry = "window"} {
  %o = hybrid.recurrence additive %q, %k, %v, %s scale 1.0 window 64 stride 32
      : (!x, !x, !x, !hybrid.segments) -> !x
  return %o : !x
}
func.func @window_grad(%q: !x, %k: !x, %v: !x, %s: !hybrid.segments, %d: !x)
    -> (!x, !x, !x) attributes {hybrid.entry = "window_grad"} {
  %r:3 = hybrid.recurrence_grad additive %q, %k, %v, %s, %d scale 1.0 window 64 stride 32
      : (!x, !x, !x, !hybrid.segments, !x) -> (!x, !x, !x)
  return %r#0, %r#1, %r#2 : !x, !x, !x
}
