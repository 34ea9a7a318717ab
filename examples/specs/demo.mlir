// Gated DeltaNet and NoPE attention, three to one, over bytes: 0.9 M parameters,
// for the book that the main job trains on.
hybrid.model @demo vocab(256) width(128) layers(4) tied trained(256) {
  hybrid.mix ratio(3 : 1) {
    hybrid.gdn heads(4) head_dim(32) value_dim(32)
    hybrid.softmax heads(4) head_dim(32) position(nope)
  }
  hybrid.mlp swiglu(384)
}
