// The demo with gated linear attention in place of Gated DeltaNet.
hybrid.model @demo_gla vocab(256) width(192) layers(8) tied trained(512) {
  hybrid.mix ratio(3 : 1) {
    hybrid.gla heads(3) head_dim(32) value_dim(64)
    hybrid.softmax heads(3) head_dim(64) position(nope)
  }
  hybrid.mlp swiglu(256)
}
