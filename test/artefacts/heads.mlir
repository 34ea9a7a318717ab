// Head groups with different mixers in one layer, run in every way that must
// agree.
hybrid.model @heads vocab(64) width(64) layers(2) trained(64) {
  hybrid.heads total(4) {
    hybrid.softmax heads(2) head_dim(16) position(nope)
    hybrid.softmax heads(1) head_dim(16) position(rope) window(9) sinks(2)
    hybrid.gdn heads(1) head_dim(16)
  }
  hybrid.mlp swiglu(64)
}
