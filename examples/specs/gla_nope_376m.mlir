// Gated linear attention and NoPE attention, three to one.
hybrid.model @gla_nope_376m vocab(128256) width(1024) layers(8) trained(4096) dtype(bf16) {
  hybrid.mix ratio(3 : 1) {
    hybrid.gla heads(4) head_dim(128) value_dim(256)
    hybrid.softmax heads(8) head_dim(128) position(nope)
  }
  hybrid.mlp swiglu(3584)
}
