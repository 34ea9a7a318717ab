// Gated DeltaNet and NoPE attention, three to one, over bytes: 2.4 M parameters,
// for the book that the main job trains on.
hybrid.model @demo vocab(256) width(192) layers(8) tied trained(512) {
  hybrid.mix ratio(3 : 1) {
    hybrid.gdn heads(3) head_dim(32) value_dim(64)
    hybrid.softmax heads(3) head_dim(64) position(nope)
  }
  hybrid.mlp swiglu(256)
}
