// Gated linear attention and NoPE attention, three to one.
hybrid.model @gla_nope_776m vocab(128256) width(1536) layers(12) trained(4096) dtype(bf16) {
  hybrid.mix ratio(3 : 1) {
    hybrid.gla heads(4) head_dim(192) value_dim(384)
    hybrid.softmax heads(12) head_dim(128) position(nope)
  }
  hybrid.mlp swiglu(5376)
}
