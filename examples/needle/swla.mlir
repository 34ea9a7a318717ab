// plain with the history of the recurrences kept at the trained length.
hybrid.model @needle_swla vocab(34) width(64) layers(4) trained(64) init_std(0.1) {
  hybrid.mix ratio(1 : 1) {
    hybrid.swla window(64) stride(8) {
      hybrid.gla heads(2) head_dim(32) value_dim(32) gate_bias(8)
    }
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
  hybrid.mlp swiglu(128)
}
