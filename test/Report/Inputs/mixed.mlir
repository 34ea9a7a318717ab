hybrid.model @mixed vocab(64) width(64) layers(2) trained(64) {
  hybrid.mix ratio(1 : 1) {
    hybrid.gla heads(2) head_dim(16) value_dim(32) gate_rank(8)
    hybrid.heads total(6) {
      hybrid.softmax heads(4) kv_heads(2) head_dim(16) position(rope) window(8) sinks(1)
      hybrid.softmax heads(2) head_dim(16) position(nope)
    }
  }
  hybrid.mlp swiglu(32)
}
