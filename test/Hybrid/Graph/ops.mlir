// RUN: hybrid-opt %s --verify-roundtrip | FileCheck %s

!t64 = tensor<?x64xf32>
!heads = tensor<?x4x64xf32>
!values = tensor<?x2x?x32xf32, #hybrid.slots<rows = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4)>>>
!partials = tensor<?x8x8xf32, #hybrid.sized<affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0 floordiv 64 + s1)>>>
!cache = tensor<?x2x?x64xf32, #hybrid.slots<rows = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4)>>>

// CHECK-DAG: #[[CONTEXT:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4)>
// CHECK-DAG: #[[CHUNKS:.*]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0 floordiv 64 + s1)>

// CHECK-LABEL: @elementwise
func.func @elementwise(%x: !heads, %w: tensor<64xf32>, %per_head: tensor<?x4x1xf32>) -> !heads {
  // CHECK: hybrid.mul %{{.*}}, %{{.*}} : tensor<?x4x64xf32>, tensor<64xf32>
  %0 = hybrid.mul %x, %w : !heads, tensor<64xf32>
  // CHECK: hybrid.add %{{.*}}, %{{.*}} : tensor<?x4x64xf32>, tensor<?x4x1xf32>
  %1 = hybrid.add %0, %per_head : !heads, tensor<?x4x1xf32>
  // CHECK: hybrid.sub
  %2 = hybrid.sub %1, %x : !heads, !heads
  // CHECK: hybrid.scale %{{.*}} by 6.250000e-02 : tensor<?x4x64xf32>
  %3 = hybrid.scale %2 by 6.250000e-02 : !heads
  // CHECK: hybrid.silu %{{.*}} : tensor<?x4x64xf32>
  %4 = hybrid.silu %3 : !heads
  // CHECK: hybrid.sigmoid
  %5 = hybrid.sigmoid %4 : !heads
  // CHECK: hybrid.log_sigmoid
  %6 = hybrid.log_sigmoid %5 : !heads
  // CHECK: hybrid.softplus
  %7 = hybrid.softplus %6 : !heads
  // CHECK: hybrid.neg
  %8 = hybrid.neg %7 : !heads
  // CHECK: hybrid.exp
  %9 = hybrid.exp %8 : !heads
  // CHECK: hybrid.silu_grad %{{.*}}, %{{.*}} : tensor<?x4x64xf32>
  %10 = hybrid.silu_grad %x, %9 : !heads
  // CHECK: hybrid.sigmoid_grad
  %11 = hybrid.sigmoid_grad %5, %10 : !heads
  // CHECK: hybrid.log_sigmoid_grad
  %12 = hybrid.log_sigmoid_grad %x, %11 : !heads
  // CHECK: hybrid.softplus_grad
  %13 = hybrid.softplus_grad %x, %12 : !heads
  // CHECK: hybrid.fill 1.000000e+00 : tensor<?x4x64xf32>
  %14 = hybrid.fill 1.000000e+00 : !heads
  %15 = hybrid.mul %13, %14 : !heads, !heads
  return %15 : !heads
}

// CHECK-LABEL: @dropout
func.func @dropout(%x: !heads, %key: tensor<1xi32>) -> !heads {
  // CHECK: hybrid.dropout %{{.*}}, %{{.*}} rate 1.000000e-01 : tensor<?x4x64xf32>
  %1 = hybrid.dropout %x, %key rate 1.000000e-01 : !heads
  return %1 : !heads
}

// CHECK-LABEL: @norms_and_positions
func.func @norms_and_positions(%x: !heads, %dy: !heads, %segments: !hybrid.segments) -> !heads {
  // CHECK: hybrid.normalize rms %{{.*}} epsilon 9.9999999999999995E-7 : tensor<?x4x64xf32>
  %0 = hybrid.normalize rms %x epsilon 1.000000e-06 : tensor<?x4x64xf32>
  // CHECK: hybrid.normalize_grad l2 %{{.*}}, %{{.*}} epsilon 9.9999999999999995E-7 : tensor<?x4x64xf32>
  %1 = hybrid.normalize_grad l2 %0, %dy epsilon 1.000000e-06 : tensor<?x4x64xf32>
  // CHECK: hybrid.rotary %{{.*}}, %{{.*}} base 1.000000e+04 dim 32 : tensor<?x4x64xf32>
  %2 = hybrid.rotary %1, %segments base 1.000000e+04 dim 32 : !heads
  // CHECK: hybrid.rotary %{{.*}}, %{{.*}} base 1.000000e+04 dim 64 ntk 2.000000e+00 original 2048 inverse
  %3 = hybrid.rotary %2, %segments base 1.000000e+04 dim 64 ntk 2.000000e+00 original 2048 inverse : !heads
  // CHECK: hybrid.log_n_scale %{{.*}}, %{{.*}} trained 4096 : tensor<?x4x64xf32>
  %4 = hybrid.log_n_scale %3, %segments trained 4096 : !heads
  return %4 : !heads
}

// CHECK-LABEL: @shapes
func.func @shapes(%x: tensor<?x256xf32>) -> (tensor<?x6x64xf32>, tensor<64xf32>, tensor<?x4x1xf32>) {
  // CHECK: hybrid.reshape %{{.*}} : tensor<?x256xf32> -> tensor<?x4x64xf32>
  %0 = hybrid.reshape %x : tensor<?x256xf32> -> !heads
  // CHECK: hybrid.slice %{{.*}} dim 1 from 1 size 2 : tensor<?x4x64xf32> -> tensor<?x2x64xf32>
  %1 = hybrid.slice %0 dim 1 from 1 size 2 : !heads -> tensor<?x2x64xf32>
  // CHECK: hybrid.concat %{{.*}}, %{{.*}} dim 1 : (tensor<?x4x64xf32>, tensor<?x2x64xf32>) -> tensor<?x6x64xf32>
  %2 = hybrid.concat %0, %1 dim 1 : (!heads, tensor<?x2x64xf32>) -> tensor<?x6x64xf32>
  // CHECK: hybrid.reduce_tokens %{{.*}} : tensor<?x4x64xf32> -> tensor<64xf32>
  %3 = hybrid.reduce_tokens %0 : !heads -> tensor<64xf32>
  // CHECK: hybrid.reduce_dim %{{.*}} : tensor<?x4x64xf32> -> tensor<?x4x1xf32>
  %4 = hybrid.reduce_dim %0 : !heads -> tensor<?x4x1xf32>
  return %2, %3, %4 : tensor<?x6x64xf32>, tensor<64xf32>, tensor<?x4x1xf32>
}

// CHECK-LABEL: @short_conv
func.func @short_conv(%x: !t64, %w: tensor<64x4xf32>, %segments: !hybrid.segments,
                      %s: tensor<?x3x64xf32, #hybrid.slots>) -> !t64 {
  // CHECK: hybrid.short_conv %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x64xf32>, tensor<64x4xf32>, !hybrid.segments) -> tensor<?x64xf32>
  %0 = hybrid.short_conv %x, %w, %segments : (!t64, tensor<64x4xf32>, !hybrid.segments) -> !t64
  // CHECK: hybrid.short_conv %{{.*}}, %{{.*}}, %{{.*}} state(%{{.*}})
  %1, %s1 = hybrid.short_conv %0, %w, %segments state(%s)
    : (!t64, tensor<64x4xf32>, !hybrid.segments, tensor<?x3x64xf32, #hybrid.slots>)
    -> (!t64, tensor<?x3x64xf32, #hybrid.slots>)
  // CHECK: hybrid.short_conv_grad
  %dx, %dw = hybrid.short_conv_grad %x, %w, %segments, %1
    : (!t64, tensor<64x4xf32>, !hybrid.segments, !t64) -> (!t64, tensor<64x4xf32>)
  return %dx : !t64
}

// CHECK-LABEL: @attention
func.func @attention(%q: !heads, %k: tensor<?x2x64xf32>, %v: tensor<?x2x32xf32>,
                     %segments: !hybrid.segments, %kc: !cache, %vc: !values) {
  // CHECK: hybrid.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} scale 1.250000e-01 windows [0, 128, 128, 64] sinks [0, 4, 4, 0]
  %o, %lse = hybrid.attention %q, %k, %v, %segments scale 1.250000e-01 windows [0, 128, 128, 64] sinks [0, 4, 4, 0]
    : (!heads, tensor<?x2x64xf32>, tensor<?x2x32xf32>, !hybrid.segments) -> (tensor<?x4x32xf32>, tensor<?x4xf32>)
  // CHECK: hybrid.attention_grad
  %dq, %dk, %dv = hybrid.attention_grad %q, %k, %v, %o, %lse, %o, %segments scale 1.250000e-01 windows [0, 128, 128, 64] sinks [0, 4, 4, 0]
    : (!heads, tensor<?x2x64xf32>, tensor<?x2x32xf32>, tensor<?x4x32xf32>, tensor<?x4xf32>, tensor<?x4x32xf32>, !hybrid.segments)
    -> (!heads, tensor<?x2x64xf32>, tensor<?x2x32xf32>)
  // CHECK: hybrid.attention_cached
  // CHECK-SAME: #hybrid.slots<rows = #[[CONTEXT]]>
  %oc, %kc2, %vc2 = hybrid.attention_cached %q, %k, %v, %kc, %vc, %segments scale 1.250000e-01 windows [0, 128, 128, 64] sinks [0, 4, 4, 0]
    : (!heads, tensor<?x2x64xf32>, tensor<?x2x32xf32>, !cache, !values, !hybrid.segments)
    -> (tensor<?x4x32xf32>, !cache, !values)
  return
}

// CHECK-LABEL: @recurrence
func.func @recurrence(%q: !heads, %k: tensor<?x4x64xf32>, %v: tensor<?x4x32xf32>, %segments: !hybrid.segments,
                      %g: tensor<?x4x1xf32>, %gk: !heads, %b: tensor<?x4xf32>,
                      %s: tensor<?x4x64x32xf32, #hybrid.slots>, %sw: tensor<?x4x4x64x32xf32, #hybrid.slots>,
                      %do: tensor<?x4x32xf32>) {
  // CHECK: hybrid.recurrence delta %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} decay(%{{.*}}) beta(%{{.*}}) scale 1.250000e-01
  %o = hybrid.recurrence delta %q, %k, %v, %segments decay(%g) beta(%b) scale 1.250000e-01
    : (!heads, !heads, tensor<?x4x32xf32>, !hybrid.segments, tensor<?x4x1xf32>, tensor<?x4xf32>) -> tensor<?x4x32xf32>
  // CHECK: hybrid.recurrence additive %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} decay(%{{.*}}) initial(%{{.*}}) scale 1.250000e-01 window 256 stride 64
  %o2, %s2 = hybrid.recurrence additive %q, %k, %v, %segments decay(%gk) initial(%sw) scale 1.250000e-01 window 256 stride 64
    : (!heads, !heads, tensor<?x4x32xf32>, !hybrid.segments, !heads, tensor<?x4x4x64x32xf32, #hybrid.slots>)
    -> (tensor<?x4x32xf32>, tensor<?x4x4x64x32xf32, #hybrid.slots>)
  // CHECK: hybrid.recurrence_grad delta
  // CHECK-SAME: decay(%{{.*}}) beta(%{{.*}}) initial(%{{.*}}) dfinal(%{{.*}})
  %d:6 = hybrid.recurrence_grad delta %q, %k, %v, %segments, %do decay(%g) beta(%b) initial(%s) dfinal(%s) scale 1.250000e-01
    : (!heads, !heads, tensor<?x4x32xf32>, !hybrid.segments, tensor<?x4x32xf32>, tensor<?x4x1xf32>, tensor<?x4xf32>,
       tensor<?x4x64x32xf32, #hybrid.slots>, tensor<?x4x64x32xf32, #hybrid.slots>)
    -> (!heads, !heads, tensor<?x4x32xf32>, tensor<?x4x1xf32>, tensor<?x4xf32>, tensor<?x4x64x32xf32, #hybrid.slots>)
  return
}

// CHECK-LABEL: @heads
func.func @heads(%ids: tensor<?xi32>, %labels: tensor<?xi32>, %weights: tensor<?xf32>, %table: tensor<256x64xf32>,
                 %segments: !hybrid.segments) -> (tensor<?x256xf32, #hybrid.per_segment>, tensor<?xf32>, tensor<256x64xf32>) {
  // CHECK: hybrid.embed %{{.*}}, %{{.*}} : (tensor<?xi32>, tensor<256x64xf32>) -> tensor<?x64xf32>
  %x = hybrid.embed %ids, %table : (tensor<?xi32>, tensor<256x64xf32>) -> !t64
  // CHECK: hybrid.last_rows %{{.*}}, %{{.*}} : (tensor<?x64xf32>, !hybrid.segments) -> tensor<?x64xf32, #hybrid.per_segment>
  %last = hybrid.last_rows %x, %segments : (!t64, !hybrid.segments) -> tensor<?x64xf32, #hybrid.per_segment>
  // CHECK: hybrid.product %{{.*}}, %{{.*}} transpose_b : (tensor<?x64xf32, #hybrid.per_segment>, tensor<256x64xf32>) -> tensor<?x256xf32, #hybrid.per_segment>
  %y = hybrid.product %last, %table transpose_b : (tensor<?x64xf32, #hybrid.per_segment>, tensor<256x64xf32>) -> tensor<?x256xf32, #hybrid.per_segment>
  %logits = hybrid.product %x, %table transpose_b : (!t64, tensor<256x64xf32>) -> tensor<?x256xf32>
  // CHECK: hybrid.cross_entropy %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x256xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>
  %loss = hybrid.cross_entropy %logits, %labels, %weights : (tensor<?x256xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>
  // CHECK: hybrid.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}} dloss(%{{.*}})
  %d0 = hybrid.cross_entropy_grad %logits, %labels, %weights dloss(%loss) : (tensor<?x256xf32>, tensor<?xi32>, tensor<?xf32>, tensor<?xf32>) -> tensor<?x256xf32>
  // CHECK: hybrid.cross_entropy_grad %{{.*}}, %{{.*}}, %{{.*}} : (tensor<?x256xf32>
  %d1 = hybrid.cross_entropy_grad %logits, %labels, %weights : (tensor<?x256xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?x256xf32>
  // CHECK: hybrid.embed_grad %{{.*}}, %{{.*}} : (tensor<?xi32>, tensor<?x64xf32>) -> tensor<256x64xf32>
  %dt = hybrid.embed_grad %ids, %x : (tensor<?xi32>, !t64) -> tensor<256x64xf32>
  // CHECK: hybrid.product %{{.*}}, %{{.*}} transpose_a : (tensor<?x256xf32>, tensor<?x64xf32>) -> tensor<256x64xf32>
  %dw = hybrid.product %d1, %x transpose_a : (tensor<?x256xf32>, !t64) -> tensor<256x64xf32>
  %sum = hybrid.add %dt, %dw : tensor<256x64xf32>, tensor<256x64xf32>
  return %y, %loss, %sum : tensor<?x256xf32, #hybrid.per_segment>, tensor<?xf32>, tensor<256x64xf32>
}

// CHECK-LABEL: @rowwise
func.func @rowwise(%x: !t64, %w: tensor<64xf32>) -> (!t64, !t64) {
  // CHECK: hybrid.rowwise (%[[A:.*]] = %{{.*}} : tensor<?x64xf32>, %[[W:.*]] = %{{.*}} : tensor<64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // CHECK:   %[[N:.*]] = hybrid.normalize rms %[[A]]
  // CHECK:   %[[M:.*]] = hybrid.mul %[[N]], %[[W]]
  // CHECK:   hybrid.yield %[[N]], %[[M]] : tensor<?x64xf32>, tensor<?x64xf32>
  %0:2 = hybrid.rowwise (%a = %x : !t64, %b = %w : tensor<64xf32>) -> (!t64, !t64) {
    %n = hybrid.normalize rms %a epsilon 1.000000e-05 : !t64
    %m = hybrid.mul %n, %b : !t64, tensor<64xf32>
    hybrid.yield %n, %m : !t64, !t64
  }
  return %0#0, %0#1 : !t64, !t64
}

// CHECK-LABEL: @workspace
// CHECK-SAME: tensor<?x8x8xf32, #hybrid.sized<#[[CHUNKS]]>>
func.func @workspace(%x: !partials) -> !partials {
  return %x : !partials
}

// What is f32 whatever the type of the data, and what follows it.
// CHECK-LABEL: @types
func.func @types(%x: tensor<?x64xbf16>, %w: tensor<256x64xf32>, %q: tensor<?x4x64xbf16>,
                 %dyh: tensor<?x256xbf16>, %g: tensor<?x4x1xf32>, %segments: !hybrid.segments) {
  // CHECK: hybrid.cast %{{.*}} : tensor<?x64xbf16> to tensor<?x64xf32>
  %0 = hybrid.cast %x : tensor<?x64xbf16> to tensor<?x64xf32>
  // CHECK: hybrid.cast %{{.*}} : tensor<256x64xf32> to tensor<256x64xbf16>
  %1 = hybrid.cast %w : tensor<256x64xf32> to tensor<256x64xbf16>
  // CHECK: hybrid.product {{.*}} : (tensor<?x64xbf16>, tensor<256x64xbf16>) -> tensor<?x256xbf16>
  %2 = hybrid.product %x, %1 transpose_b : (tensor<?x64xbf16>, tensor<256x64xbf16>) -> tensor<?x256xbf16>
  // CHECK: hybrid.product {{.*}} : (tensor<?x64xbf16>, tensor<256x64xbf16>) -> tensor<?x256xf32>
  %3 = hybrid.product %x, %1 transpose_b : (tensor<?x64xbf16>, tensor<256x64xbf16>) -> tensor<?x256xf32>
  // CHECK: hybrid.product {{.*}} transpose_a : (tensor<?x256xbf16>, tensor<?x64xbf16>) -> tensor<256x64xf32>
  %4 = hybrid.product %dyh, %x transpose_a : (tensor<?x256xbf16>, tensor<?x64xbf16>) -> tensor<256x64xf32>
  // CHECK: hybrid.attention {{.*}} -> (tensor<?x4x64xbf16>, tensor<?x4xf32>)
  %o, %lse = hybrid.attention %q, %q, %q, %segments scale 1.0 windows [0, 0, 0, 0] sinks [0, 0, 0, 0]
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, !hybrid.segments) -> (tensor<?x4x64xbf16>, tensor<?x4xf32>)
  // CHECK: hybrid.recurrence {{.*}} tensor<?x4x1xf32>) -> tensor<?x4x64xbf16>
  %r = hybrid.recurrence additive %q, %q, %q, %segments decay(%g) scale 1.0
      : (tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, tensor<?x4x64xbf16>, !hybrid.segments, tensor<?x4x1xf32>) -> tensor<?x4x64xbf16>
  return
}
