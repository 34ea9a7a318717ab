// plain with ordinary gates, which forget within the trained length.
hybrid.model @needle_control vocab(34) width(64) layers(4) trained(64) init_std(0.1) {
  hybrid.mix ratio(1 : 1) {
    hybrid.gla heads(2) head_dim(32) value_dim(32) gate_bias(0)
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
  hybrid.mlp swiglu(128)
}
