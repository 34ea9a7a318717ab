// Gated DeltaNet and NoPE attention, three to one.
hybrid.model @gdn_nope_376m vocab(128256) width(1024) layers(8) trained(4096) dtype(bf16) {
  hybrid.mix ratio(3 : 1) {
    hybrid.gdn heads(8) head_dim(128)
    hybrid.softmax heads(8) head_dim(128) position(nope)
  }
  hybrid.mlp swiglu(3584)
}
