// What long calls alone have: a recurrence in parts, and a loss head in pieces.
hybrid.model @long vocab(16448) width(32) layers(1) trained(64) {
  hybrid.gla heads(1) head_dim(16) value_dim(16)
}
