// One mixer, for its forward, gradient and step beside the oracle on a GPU.
hybrid.model @softmax_nope vocab(32) width(32) layers(1) trained(512) {
  hybrid.softmax heads(2) kv_heads(1) head_dim(64) position(nope)
}
