// The demo with gated linear attention in place of Gated DeltaNet.
hybrid.model @demo_gla vocab(256) width(128) layers(4) tied trained(256) {
  hybrid.mix ratio(3 : 1) {
    hybrid.gla heads(4) head_dim(32) value_dim(32)
    hybrid.softmax heads(4) head_dim(32) position(nope)
  }
  hybrid.mlp swiglu(384)
}
