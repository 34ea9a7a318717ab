// Rotary and NoPE attention, three to one, all of it full.
hybrid.model @rope_nope_776m vocab(128256) width(1536) layers(12) trained(4096) dtype(bf16) {
  hybrid.mix ratio(3 : 1) {
    hybrid.softmax heads(12) head_dim(128) position(rope, base = 10000)
    hybrid.softmax heads(12) head_dim(128) position(nope)
  }
  hybrid.mlp swiglu(5376)
}
