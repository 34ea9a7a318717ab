// One mixer, for its forward, gradient and step beside the oracle on a GPU.
hybrid.model @swla_gla vocab(32) width(32) layers(1) trained(512) {
  hybrid.swla window(128) stride(32) {
    hybrid.gla heads(1) head_dim(64) value_dim(64)
  }
}
