// Gated DeltaNet and NoPE attention, three to one.
hybrid.model @gdn_nope_776m vocab(128256) width(1536) layers(12) trained(4096) dtype(bf16) {
  hybrid.mix ratio(3 : 1) {
    hybrid.gdn heads(12) head_dim(128)
    hybrid.softmax heads(12) head_dim(128) position(nope)
  }
  hybrid.mlp swiglu(5376)
}
