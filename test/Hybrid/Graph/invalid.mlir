// One case per verifier branch of the graph operations.
// RUN: hybrid-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{map has 1 dimensions and 0 symbols, expected 0 and 6; write affine_map<()[tokens, segments, longest, slots, context, depth] -> (...)>}}
func.func @slots_dimensions(%x: tensor<?x2x?x4xf32, #hybrid.slots<rows = affine_map<(d0) -> (d0)>>>)

// -----

// expected-error @+1 {{rows has 2 results, expected 1}}
func.func @slots_results(%x: tensor<?x2x?x4xf32, #hybrid.slots<rows = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4, s5)>>>)

// -----

// expected-error @+1 {{tensor has 1 dynamic sizes but its encoding gives 2}}
func.func @slots_sizes(%x: tensor<?x2x8x4xf32, #hybrid.slots<rows = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4)>>>)

// -----

// expected-error @+1 {{tensor has 2 dynamic sizes but its encoding gives 1}}
func.func @per_segment(%x: tensor<?x?xf32, #hybrid.per_segment>)

// -----

// expected-error @+1 {{map has 0 dimensions and 1 symbols, expected 0 and 6}}
func.func @sized_symbols(%x: tensor<?xf32, #hybrid.sized<affine_map<()[s0] -> (s0)>>>)

// -----

// expected-error @+1 {{tensor has 1 dynamic sizes but its encoding gives 2}}
func.func @sized_sizes(%x: tensor<?xf32, #hybrid.sized<affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0, s1)>>>)

// -----

func.func @stretch(%a: tensor<?x4xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{cannot stretch b of type 'tensor<3xf32>' to a of type 'tensor<?x4xf32>'; every dimension of b must be 1 or that of a, counted from the last}}
  %0 = hybrid.add %a, %b : tensor<?x4xf32>, tensor<3xf32>
  return
}

// -----

func.func @stretch_rank(%a: tensor<4xf32>, %b: tensor<?x4xf32>) {
  // expected-error @+1 {{cannot stretch b of type 'tensor<?x4xf32>' to a of type 'tensor<4xf32>'}}
  %0 = hybrid.mul %a, %b : tensor<4xf32>, tensor<?x4xf32>
  return
}

// -----

func.func @stretch_rows(%a: tensor<?x4xf32>, %b: tensor<?x4xf32, #hybrid.per_segment>) {
  // expected-error @+1 {{leading sizes of a and b are counted differently}}
  %0 = hybrid.sub %a, %b : tensor<?x4xf32>, tensor<?x4xf32, #hybrid.per_segment>
  return
}

// -----

func.func @epsilon(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{epsilon is 0.000000e+00 but must be above 0, so that a zero row has a gradient}}
  %0 = hybrid.normalize l2 %x epsilon 0.000000e+00 : tensor<?x4xf32>
  return
}

// -----

func.func @norm_dim(%x: tensor<?xf32>) {
  // expected-error @+1 {{sums over the last dimension, which must be static in 'tensor<?xf32>'}}
  %0 = hybrid.normalize_grad rms %x, %x epsilon 1.000000e-06 : tensor<?xf32>
  return
}

// -----

func.func @rotary_odd(%x: tensor<?x2x8xf32>, %s: !hybrid.segments) {
  // expected-error @+1 {{rotates 3 channels in two halves, so the number must be even and above 0}}
  %0 = hybrid.rotary %x, %s base 1.000000e+04 dim 3 : tensor<?x2x8xf32>
  return
}

// -----

func.func @rotary_wide(%x: tensor<?x2x8xf32>, %s: !hybrid.segments) {
  // expected-error @+1 {{rotates 16 channels of heads that have 8}}
  %0 = hybrid.rotary %x, %s base 1.000000e+04 dim 16 : tensor<?x2x8xf32>
  return
}

// -----

func.func @rotary_base(%x: tensor<?x2x8xf32>, %s: !hybrid.segments) {
  // expected-error @+1 {{base is 1.000000e+00 but must be above 1}}
  %0 = hybrid.rotary %x, %s base 1.000000e+00 dim 8 : tensor<?x2x8xf32>
  return
}

// -----

func.func @ntk_alone(%x: tensor<?x2x8xf32>, %s: !hybrid.segments) {
  // expected-error @+1 {{has ntk_factor but no original_length; dynamic NTK needs both}}
  %0 = "hybrid.rotary"(%x, %s) {base = 1.0e+04 : f64, rotary_dim = 8 : i64, ntk_factor = 2.0 : f64} : (tensor<?x2x8xf32>, !hybrid.segments) -> tensor<?x2x8xf32>
  return
}

// -----

func.func @ntk_length_alone(%x: tensor<?x2x8xf32>, %s: !hybrid.segments) {
  // expected-error @+1 {{has original_length but no ntk_factor; dynamic NTK needs both}}
  %0 = "hybrid.rotary"(%x, %s) {base = 1.0e+04 : f64, rotary_dim = 8 : i64, original_length = 64 : i64} : (tensor<?x2x8xf32>, !hybrid.segments) -> tensor<?x2x8xf32>
  return
}

// -----

func.func @ntk_factor(%x: tensor<?x2x8xf32>, %s: !hybrid.segments) {
  // expected-error @+1 {{ntk factor is 5.000000e-01 but must be at least 1}}
  %0 = hybrid.rotary %x, %s base 1.000000e+04 dim 8 ntk 5.000000e-01 original 64 : tensor<?x2x8xf32>
  return
}

// -----

func.func @ntk_length(%x: tensor<?x2x8xf32>, %s: !hybrid.segments) {
  // expected-error @+1 {{original length is 0 but must be above 0}}
  %0 = hybrid.rotary %x, %s base 1.000000e+04 dim 8 ntk 2.000000e+00 original 0 : tensor<?x2x8xf32>
  return
}

// -----

func.func @ntk_dim(%x: tensor<?x2x8xf32>, %s: !hybrid.segments) {
  // expected-error @+1 {{dynamic NTK raises to the power d / (d - 2), so it needs more than 2 rotated channels}}
  %0 = hybrid.rotary %x, %s base 1.000000e+04 dim 2 ntk 2.000000e+00 original 64 : tensor<?x2x8xf32>
  return
}

// -----

func.func @trained(%x: tensor<?x2x8xf32>, %s: !hybrid.segments) {
  // expected-error @+1 {{trained length is 1 but must be at least 2: rows are divided by its logarithm}}
  %0 = hybrid.log_n_scale %x, %s trained 1 : tensor<?x2x8xf32>
  return
}

// -----

func.func @no_rows(%x: tensor<f32>, %s: !hybrid.segments) {
  // expected-error @+1 {{scales rows, but x of type 'tensor<f32>' has none}}
  %0 = hybrid.log_n_scale %x, %s trained 16 : tensor<f32>
  return
}

// -----

func.func @reduce_tokens(%x: tensor<?x2x8xf32>) {
  // expected-error @+1 {{result of type 'tensor<2xf32>' is not the static end of the shape of 'tensor<?x2x8xf32>'}}
  %0 = hybrid.reduce_tokens %x : tensor<?x2x8xf32> -> tensor<2xf32>
  return
}

// -----

func.func @reduce_dim(%x: tensor<?xf32>) {
  // expected-error @+2 {{reduce_dim sums over the last of at least 2 dimensions, but x is 'tensor<?xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.reduce_dim %x : tensor<?xf32> -> tensor<1xf32>
  return
}

// -----

func.func @reshape_dynamic(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{from 'tensor<?x8xf32>' to 'tensor<8x?xf32>' moves the dynamic size; it must stay the leading one}}
  %0 = hybrid.reshape %x : tensor<?x8xf32> -> tensor<8x?xf32>
  return
}

// -----

func.func @reshape_size(%x: tensor<?x8xf32>) {
  // expected-error @+1 {{from 8 to 6 elements per row}}
  %0 = hybrid.reshape %x : tensor<?x8xf32> -> tensor<?x2x3xf32>
  return
}

// -----

func.func @slice_dim(%x: tensor<?x8xf32>) {
  // expected-error @+2 {{slice along dimension 2 of 'tensor<?x8xf32>', which has 2 dimensions}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.slice %x dim 2 from 0 size 4 : tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @slice_dynamic(%x: tensor<?x8xf32>) {
  // expected-error @+2 {{slice along dimension 0 of 'tensor<?x8xf32>', which is dynamic; only static dimensions are cut and joined}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.slice %x dim 0 from 0 size 4 : tensor<?x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @slice_range(%x: tensor<?x8xf32>) {
  // expected-error @+2 {{slice takes 4 indices from 6 on, but dimension 1 of 'tensor<?x8xf32>' has 8}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.slice %x dim 1 from 6 size 4 : tensor<?x8xf32> -> tensor<?x4xf32>
  return
}

// -----

func.func @slice_result(%x: tensor<?x8xf32>) {
  // expected-error @+2 {{'hybrid.slice' op inferred type(s) 'tensor<?x4xf32>' are incompatible with return type(s) of operation 'tensor<?x5xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.slice %x dim 1 from 0 size 4 : tensor<?x8xf32> -> tensor<?x5xf32>
  return
}

// -----

func.func @concat_nothing() {
  // expected-error @+2 {{concat has no operands, expected at least 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "hybrid.concat"() {dim = 1 : i64} : () -> tensor<?x8xf32>
  return
}

// -----

func.func @concat_unlike(%a: tensor<?x2x8xf32>, %b: tensor<?x2x4xf32>) {
  // expected-error @+2 {{concat joins operand 0 of type 'tensor<?x2x8xf32>' and operand 1 of type 'tensor<?x2x4xf32>', which differ beside dimension 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.concat %a, %b dim 1 : (tensor<?x2x8xf32>, tensor<?x2x4xf32>) -> tensor<?x4x8xf32>
  return
}

// -----

func.func @conv_channels(%x: tensor<?x8xf32>, %w: tensor<4x4xf32>, %s: !hybrid.segments) {
  // expected-error @+2 {{short_conv: weight is 'tensor<4x4xf32>' but must be 'tensor<8x4xf32>' because x has that many channels}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.short_conv %x, %w, %s : (tensor<?x8xf32>, tensor<4x4xf32>, !hybrid.segments) -> tensor<?x8xf32>
  return
}

// -----

func.func @conv_kernel(%x: tensor<?x8xf32>, %w: tensor<8x?xf32>, %s: !hybrid.segments) {
  // expected-error @+2 {{short_conv: weight 'tensor<8x?xf32>' needs a static kernel of at least 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.short_conv %x, %w, %s : (tensor<?x8xf32>, tensor<8x?xf32>, !hybrid.segments) -> tensor<?x8xf32>
  return
}

// -----

func.func @conv_state(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>, %s: !hybrid.segments, %st: tensor<?x4x8xf32, #hybrid.slots>) {
  // expected-error @+2 {{short_conv: state is 'tensor<?x4x8xf32, #hybrid.slots>' but must be 'tensor<?x3x8xf32>' because a slot holds kernel - 1 earlier rows of x}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = hybrid.short_conv %x, %w, %s state(%st) : (tensor<?x8xf32>, tensor<8x4xf32>, !hybrid.segments, tensor<?x4x8xf32, #hybrid.slots>) -> (tensor<?x8xf32>, tensor<?x4x8xf32, #hybrid.slots>)
  return
}

// -----

func.func @conv_dy(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>, %s: !hybrid.segments, %dy: tensor<?x4xf32>) {
  // expected-error @+2 {{short_conv_grad: dy is 'tensor<?x4xf32>' but must be 'tensor<?x8xf32>' because the result has the shape of x}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = hybrid.short_conv_grad %x, %w, %s, %dy : (tensor<?x8xf32>, tensor<8x4xf32>, !hybrid.segments, tensor<?x4xf32>) -> (tensor<?x8xf32>, tensor<8x4xf32>)
  return
}

// -----

!q = tensor<?x6x8xf32>
!k = tensor<?x4x8xf32>
func.func @groups(%q: !q, %k: !k, %s: !hybrid.segments) {
  // expected-error @+2 {{attention: 6 query heads cannot share 4 key and value heads evenly; make the first a multiple of the second}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %lse = hybrid.attention %q, %k, %k, %s scale 1.0 windows [0, 0, 0, 0, 0, 0] sinks [0, 0, 0, 0, 0, 0] : (!q, !k, !k, !hybrid.segments) -> (!q, tensor<?x6xf32>)
  return
}

// -----

!q = tensor<?x?x8xf32>
func.func @dynamic_heads(%q: !q, %s: !hybrid.segments) {
  // expected-error @+2 {{attention: q 'tensor<?x?x8xf32>', k 'tensor<?x?x8xf32>' and v 'tensor<?x?x8xf32>' need static heads and widths of at least 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %lse = hybrid.attention %q, %q, %q, %s scale 1.0 windows [0] sinks [0] : (!q, !q, !q, !hybrid.segments) -> (!q, tensor<?x?xf32>)
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @key_width(%q: !q, %k: tensor<?x2x4xf32>, %s: !hybrid.segments) {
  // expected-error @+2 {{attention: k is 'tensor<?x2x4xf32>' but must be 'tensor<?x2x8xf32>' because q has that width}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %lse = hybrid.attention %q, %k, %q, %s scale 1.0 windows [0, 0] sinks [0, 0] : (!q, tensor<?x2x4xf32>, !q, !hybrid.segments) -> (!q, tensor<?x2xf32>)
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @value_heads(%q: !q, %v: tensor<?x1x8xf32>, %s: !hybrid.segments) {
  // expected-error @+2 {{attention: v is 'tensor<?x1x8xf32>' but must be 'tensor<?x2x8xf32>' because k has those heads}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %lse = hybrid.attention %q, %q, %v, %s scale 1.0 windows [0, 0] sinks [0, 0] : (!q, !q, tensor<?x1x8xf32>, !hybrid.segments) -> (!q, tensor<?x2xf32>)
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @few_windows(%q: !q, %s: !hybrid.segments) {
  // expected-error @+1 {{windows has 1 entries for 2 query heads; give one per head, 0 for none}}
  %o, %lse = hybrid.attention %q, %q, %q, %s scale 1.0 windows [4] sinks [0, 0] : (!q, !q, !q, !hybrid.segments) -> (!q, tensor<?x2xf32>)
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @window_beyond_positions(%q: !q, %s: !hybrid.segments) {
  // expected-error @+1 {{windows of head 0 is 3000000000 but positions end at 2147483647; write 0 for a head without a window}}
  %o, %lse = hybrid.attention %q, %q, %q, %s scale 1.0 windows [3000000000, 0] sinks [0, 0] : (!q, !q, !q, !hybrid.segments) -> (!q, tensor<?x2xf32>)
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @negative_sinks(%q: !q, %s: !hybrid.segments) {
  // expected-error @+1 {{sinks of head 1 is -1 but must be positive, or 0 for none}}
  %o, %lse = hybrid.attention %q, %q, %q, %s scale 1.0 windows [4, 4] sinks [0, -1] : (!q, !q, !q, !hybrid.segments) -> (!q, tensor<?x2xf32>)
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @sinks_without_window(%q: !q, %s: !hybrid.segments) {
  // expected-error @+1 {{head 1 has 2 sink tokens but no window, so that they change nothing; give it a window or no sinks}}
  %o, %lse = hybrid.attention %q, %q, %q, %s scale 1.0 windows [4, 0] sinks [0, 2] : (!q, !q, !q, !hybrid.segments) -> (!q, tensor<?x2xf32>)
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @scale(%q: !q, %s: !hybrid.segments) {
  // expected-error @+1 {{scale is INF but must be finite}}
  %o, %lse = hybrid.attention %q, %q, %q, %s scale 0x7FF0000000000000 windows [4, 0] sinks [0, 0] : (!q, !q, !q, !hybrid.segments) -> (!q, tensor<?x2xf32>)
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @attention_dout(%q: !q, %lse: tensor<?x2xf32>, %d: tensor<?x2x4xf32>, %s: !hybrid.segments) {
  // expected-error @+2 {{attention_grad: dout is 'tensor<?x2x4xf32>' but must be 'tensor<?x2x8xf32>' because q has those heads and v that width}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = hybrid.attention_grad %q, %q, %q, %q, %lse, %d, %s scale 1.0 windows [4, 0] sinks [0, 0] : (!q, !q, !q, !q, tensor<?x2xf32>, tensor<?x2x4xf32>, !hybrid.segments) -> (!q, !q, !q)
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @attention_lse(%q: !q, %lse: tensor<?x1xf32>, %s: !hybrid.segments) {
  // expected-error @+2 {{attention_grad: log_sum_exp is 'tensor<?x1xf32>' but must be 'tensor<?x2xf32>' because q has those heads}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = hybrid.attention_grad %q, %q, %q, %q, %lse, %q, %s scale 1.0 windows [4, 0] sinks [0, 0] : (!q, !q, !q, !q, tensor<?x1xf32>, !q, !hybrid.segments) -> (!q, !q, !q)
  return
}

// -----

!q = tensor<?x2x8xf32>
!cache = tensor<?x2x16x8xf32, #hybrid.slots>
func.func @cache_rows(%q: !q, %c: !cache, %s: !hybrid.segments) {
  // expected-error @+1 {{does not say its rows; give it the encoding #hybrid.slots<rows = ...>}}
  %0:3 = hybrid.attention_cached %q, %q, %q, %c, %c, %s scale 1.0 windows [4, 0] sinks [0, 0] : (!q, !q, !q, !cache, !cache, !hybrid.segments) -> (!q, !cache, !cache)
  return
}

// -----

#context = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4)>
!q = tensor<?x2x8xf32>
!cache = tensor<?x2x?x4xf32, #hybrid.slots<rows = #context>>
func.func @key_cache(%q: !q, %c: !cache, %s: !hybrid.segments) {
  // expected-error @+2 {{attention_cached: k_cache is 'tensor<?x2x?x4xf32, #hybrid.slots<rows = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4)>>>' but must be 'tensor<?x2x?x8xf32>' because k has those heads and that width}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = hybrid.attention_cached %q, %q, %q, %c, %c, %s scale 1.0 windows [4, 0] sinks [0, 0] : (!q, !q, !q, !cache, !cache, !hybrid.segments) -> (!q, !cache, !cache)
  return
}

// -----

#context = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4)>
!q = tensor<?x2x8xf32>
!cache = tensor<?x2x?x8xf32, #hybrid.slots<rows = #context>>
!values = tensor<?x1x?x8xf32, #hybrid.slots<rows = #context>>
func.func @value_cache(%q: !q, %c: !cache, %v: !values, %s: !hybrid.segments) {
  // expected-error @+2 {{but must be 'tensor<?x2x?x8xf32>' because v has those heads and that width, and k_cache those rows}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = hybrid.attention_cached %q, %q, %q, %c, %v, %s scale 1.0 windows [4, 0] sinks [0, 0] : (!q, !q, !q, !cache, !values, !hybrid.segments) -> (!q, !cache, !values)
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @decay(%q: !q, %g: tensor<?x2x4xf32>, %s: !hybrid.segments) {
  // expected-error @+2 {{recurrence: decay is 'tensor<?x2x4xf32>' but must be 'tensor<?x2x8xf32>' because q has those heads and channels (or 1 for a decay per head)}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.recurrence additive %q, %q, %q, %s decay(%g) scale 1.0 : (!q, !q, !q, !hybrid.segments, tensor<?x2x4xf32>) -> !q
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @beta(%q: !q, %b: tensor<?x1xf32>, %s: !hybrid.segments) {
  // expected-error @+2 {{recurrence: beta is 'tensor<?x1xf32>' but must be 'tensor<?x2xf32>' because q has those heads}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.recurrence delta %q, %q, %q, %s beta(%b) scale 1.0 : (!q, !q, !q, !hybrid.segments, tensor<?x1xf32>) -> !q
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @beta_unused(%q: !q, %b: tensor<?x2xf32>, %s: !hybrid.segments) {
  // expected-error @+1 {{has beta, which the additive update does not use; drop it or write delta}}
  %0 = hybrid.recurrence additive %q, %q, %q, %s beta(%b) scale 1.0 : (!q, !q, !q, !hybrid.segments, tensor<?x2xf32>) -> !q
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @window_alone(%q: !q, %s: !hybrid.segments) {
  // expected-error @+2 {{recurrence: has a window but no stride; a bounded history needs both}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "hybrid.recurrence"(%q, %q, %q, %s) {update = #hybrid<update_rule additive>, scale = 1.0 : f64, window = 8 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0>} : (!q, !q, !q, !hybrid.segments) -> !q
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @stride_alone(%q: !q, %s: !hybrid.segments) {
  // expected-error @+2 {{recurrence: has a stride but no window; a bounded history needs both}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = "hybrid.recurrence"(%q, %q, %q, %s) {update = #hybrid<update_rule additive>, scale = 1.0 : f64, stride = 8 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0>} : (!q, !q, !q, !hybrid.segments) -> !q
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @window_zero(%q: !q, %s: !hybrid.segments) {
  // expected-error @+2 {{recurrence: window is 0 and stride 4 but both must be at least 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.recurrence additive %q, %q, %q, %s scale 1.0 window 0 stride 4 : (!q, !q, !q, !hybrid.segments) -> !q
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @stride(%q: !q, %s: !hybrid.segments) {
  // expected-error @+2 {{recurrence: stride 3 does not divide the window 8; choose a divisor of the window}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.recurrence additive %q, %q, %q, %s scale 1.0 window 8 stride 3 : (!q, !q, !q, !hybrid.segments) -> !q
  return
}

// -----

!q = tensor<?x2x8xf32>
!s = tensor<?x2x4x8xf32, #hybrid.slots>
func.func @initial(%q: !q, %i: !s, %s: !hybrid.segments) {
  // expected-error @+2 {{recurrence: initial is 'tensor<?x2x4x8xf32, #hybrid.slots>' but must be 'tensor<?x2x8x8xf32>' because a slot holds one state per head}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = hybrid.recurrence additive %q, %q, %q, %s initial(%i) scale 1.0 : (!q, !q, !q, !hybrid.segments, !s) -> (!q, !s)
  return
}

// -----

!q = tensor<?x2x8xf32>
!s = tensor<?x2x8x8xf32, #hybrid.slots>
func.func @initial_window(%q: !q, %i: !s, %s: !hybrid.segments) {
  // expected-error @+2 {{but must be 'tensor<?x4x2x8x8xf32>' because a slot holds window / stride states per head}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = hybrid.recurrence additive %q, %q, %q, %s initial(%i) scale 1.0 window 16 stride 4 : (!q, !q, !q, !hybrid.segments, !s) -> (!q, !s)
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @recurrence_dout(%q: !q, %d: tensor<?x2x4xf32>, %s: !hybrid.segments) {
  // expected-error @+2 {{recurrence_grad: dout is 'tensor<?x2x4xf32>' but must be 'tensor<?x2x8xf32>' because q has those heads and v that width}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = hybrid.recurrence_grad additive %q, %q, %q, %s, %d scale 1.0 : (!q, !q, !q, !hybrid.segments, tensor<?x2x4xf32>) -> (!q, !q, !q)
  return
}

// -----

!q = tensor<?x2x8xf32>
!s = tensor<?x2x8x8xf32, #hybrid.slots>
func.func @dfinal_alone(%q: !q, %f: !s, %s: !hybrid.segments) {
  // expected-error @+2 {{recurrence_grad: has dfinal but no initial; a final state comes back only where an initial one went in}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = hybrid.recurrence_grad additive %q, %q, %q, %s, %q dfinal(%f) scale 1.0 : (!q, !q, !q, !hybrid.segments, !q, !s) -> (!q, !q, !q)
  return
}

// -----

!q = tensor<?x2x8xf32>
!s = tensor<?x2x8x8xf32, #hybrid.slots>
func.func @dfinal_type(%q: !q, %i: !s, %f: tensor<?x2x8x8xf32>, %s: !hybrid.segments) {
  // expected-error @+2 {{recurrence_grad: dfinal is 'tensor<?x2x8x8xf32>' but initial is 'tensor<?x2x8x8xf32, #hybrid.slots>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:4 = hybrid.recurrence_grad additive %q, %q, %q, %s, %q initial(%i) dfinal(%f) scale 1.0 : (!q, !q, !q, !hybrid.segments, !q, !s, tensor<?x2x8x8xf32>) -> (!q, !q, !q, !s)
  return
}

// -----

!q = tensor<?x2x8xf32>
func.func @recurrence_scale(%q: !q, %s: !hybrid.segments) {
  // expected-error @+1 {{scale is nan but must be finite}}
  %0 = hybrid.recurrence additive %q, %q, %q, %s scale 0x7FF8000000000000 : (!q, !q, !q, !hybrid.segments) -> !q
  return
}

// -----

func.func @embed_grad(%ids: tensor<?xi32>, %dy: tensor<?x4xf32>) {
  // expected-error @+1 {{dy has 4 channels but the table has 8}}
  %0 = hybrid.embed_grad %ids, %dy : (tensor<?xi32>, tensor<?x4xf32>) -> tensor<16x8xf32>
  return
}

// -----

func.func @product(%a: tensor<?x4xf32>, %b: tensor<8x4xf32>) {
  // expected-error @+2 {{product sums over 4 columns of a but 8 rows of b; transpose_a and transpose_b say which dimension is summed}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.product %a, %b : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @product_dynamic(%a: tensor<?x4xf32>, %b: tensor<8x4xf32>) {
  // expected-error @+2 {{product sums over ? columns of a but 8 rows of b}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.product %a, %b transpose_a : (tensor<?x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @rank(%x: tensor<?x4xf32>, %s: !hybrid.segments) {
  // expected-error @+1 {{operand #0 must be 32-bit float tensor of shape [tokens, heads, dim], but got 'tensor<?x4xf32>'}}
  %0 = "hybrid.rotary"(%x, %s) {base = 1.0e+04 : f64, rotary_dim = 4 : i64} : (tensor<?x4xf32>, !hybrid.segments) -> tensor<?x4xf32>
  return
}

// -----

func.func @labels(%x: tensor<?x4xf32>, %l: tensor<?xi64>, %w: tensor<?xf32>) {
  // expected-error @+1 {{operand #1 must be 32-bit signless integer tensor of shape [tokens], but got 'tensor<?xi64>'}}
  %0 = hybrid.cross_entropy %x, %l, %w : (tensor<?x4xf32>, tensor<?xi64>, tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @rowwise_types(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{input 0 is 'tensor<?x4xf32>' but block argument 0 is 'tensor<?x8xf32>'}}
  %0 = "hybrid.rowwise"(%x) ({
  ^bb0(%a: tensor<?x8xf32>):
    hybrid.yield %a : tensor<?x8xf32>
  }) : (tensor<?x4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @rowwise_arguments(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{has 1 inputs but its block has 0 arguments}}
  %0 = "hybrid.rowwise"(%x) ({
    %a = hybrid.fill 1.0 : tensor<?x4xf32>
    hybrid.yield %a : tensor<?x4xf32>
  }) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @rowwise_body(%x: tensor<?x4xf32>, %w: tensor<4x4xf32>) {
  // expected-error @+1 {{may hold row-wise operations only, but holds 'hybrid.product'; move it out of the region}}
  %0 = hybrid.rowwise (%a = %x : tensor<?x4xf32>, %b = %w : tensor<4x4xf32>) -> tensor<?x4xf32> {
    // expected-note @+1 {{the operation is here}}
    %p = hybrid.product %a, %b : (tensor<?x4xf32>, tensor<4x4xf32>) -> tensor<?x4xf32>
    hybrid.yield %p : tensor<?x4xf32>
  }
  return
}

// -----

func.func @rowwise_yield(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{yields 'tensor<?x4xf32>' but has the results 'tensor<?x8xf32>'}}
  %0 = hybrid.rowwise (%a = %x : tensor<?x4xf32>) -> tensor<?x8xf32> {
    hybrid.yield %a : tensor<?x4xf32>
  }
  return
}

// -----

func.func @rowwise_type(%a: tensor<?x4xbf16>) {
  // expected-error @+1 {{operand #0 must be ranked tensor of 32-bit float values, but got 'tensor<?x4xbf16>'}}
  %0 = hybrid.silu %a : tensor<?x4xbf16>
  return
}

// -----

func.func @cast_nothing(%a: tensor<?x4xbf16>) {
  // expected-error @+1 {{from 'tensor<?x4xbf16>' to the same type changes nothing; use x itself}}
  %0 = hybrid.cast %a : tensor<?x4xbf16> to tensor<?x4xbf16>
  return
}

// -----

func.func @cast_rows(%a: tensor<?x4xbf16>) {
  // expected-error @+1 {{changes what the dynamic sizes count; a cast changes the element type alone}}
  %0 = hybrid.cast %a : tensor<?x4xbf16> to tensor<?x4xf32, #hybrid.per_segment>
  return
}

// -----

func.func @product_types(%a: tensor<?x4xbf16>, %b: tensor<8x4xf32>) {
  // expected-error @+2 {{product multiplies 'bf16' by 'f32'; put a hybrid.cast in front of one of them}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.product %a, %b transpose_b : (tensor<?x4xbf16>, tensor<8x4xf32>) -> tensor<?x8xf32>
  return
}

// -----

func.func @product_result(%a: tensor<?x4xf16>, %b: tensor<8x4xf16>) {
  // expected-error @+2 {{inferred type(s) 'tensor<?x8xf16>' are incompatible with return type(s) of operation 'tensor<?x8xbf16>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = hybrid.product %a, %b transpose_b : (tensor<?x4xf16>, tensor<8x4xf16>) -> tensor<?x8xbf16>
  return
}

// -----

func.func @attention_types(%q: tensor<?x2x8xbf16>, %k: tensor<?x2x8xbf16>, %v: tensor<?x2x8xf32>, %s: !hybrid.segments) {
  // expected-error @+2 {{attention: v has elements of type 'f32' and q of type 'bf16'; put a hybrid.cast in front of one of them}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %lse = hybrid.attention %q, %k, %v, %s scale 1.0 windows [0, 0] sinks [0, 0]
      : (tensor<?x2x8xbf16>, tensor<?x2x8xbf16>, tensor<?x2x8xf32>, !hybrid.segments) -> (tensor<?x2x8xbf16>, tensor<?x2xf32>)
  return
}

// -----

func.func @recurrence_gates(%q: tensor<?x2x8xbf16>, %g: tensor<?x2x1xbf16>, %s: !hybrid.segments) {
  // expected-error @+1 {{operand #4 must be 32-bit float tensor of shape [tokens, heads, dim], but got 'tensor<?x2x1xbf16>'}}
  %o = hybrid.recurrence additive %q, %q, %q, %s decay(%g) scale 1.0
      : (tensor<?x2x8xbf16>, tensor<?x2x8xbf16>, tensor<?x2x8xbf16>, !hybrid.segments, tensor<?x2x1xbf16>) -> tensor<?x2x8xbf16>
  return
}

// -----

func.func @conv_state(%x: tensor<?x8xbf16>, %w: tensor<8x4xf32>, %s: !hybrid.segments, %state: tensor<?x3x8xf32, #hybrid.slots>) {
  // expected-error @+2 {{short_conv: state has elements of type 'f32' and x of type 'bf16'}}
  // expected-error @+1 {{failed to infer returned types}}
  %y, %n = hybrid.short_conv %x, %w, %s state(%state) : (tensor<?x8xbf16>, tensor<8x4xf32>, !hybrid.segments, tensor<?x3x8xf32, #hybrid.slots>) -> (tensor<?x8xbf16>, tensor<?x3x8xf32, #hybrid.slots>)
  return
}
