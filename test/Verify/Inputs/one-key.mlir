// A row that sees one key.
hybrid.model @one_key vocab(16) width(16) layers(1) {
  hybrid.softmax heads(2) head_dim(8) position(nope) window(1)
}
