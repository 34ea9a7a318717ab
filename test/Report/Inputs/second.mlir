hybrid.model @second vocab(64) width(64) layers(2) trained(64) {
  hybrid.softmax heads(2) head_dim(32) position(nope) window(4)
}
