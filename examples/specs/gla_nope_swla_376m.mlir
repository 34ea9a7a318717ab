// gla_nope run beyond its training length: the recurrence keeps a history of the
// trained 4096 tokens and the NoPE logits grow with log n. Weights of
// gla_nope_376m fit. In f32, as windows of a state of 192 by 384 spill registers in
// bf16.
hybrid.model @gla_nope_swla_376m vocab(128256) width(1024) layers(8) trained(4096) {
  hybrid.mix ratio(3 : 1) {
    hybrid.swla window(4096) stride(1024) {
      hybrid.gla heads(4) head_dim(128) value_dim(256)
    }
    hybrid.softmax heads(8) head_dim(128) position(nope) logit_scale(log_n)
  }
  hybrid.mlp swiglu(3584)
}
