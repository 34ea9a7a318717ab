// The cure on the control, which should have nothing to cure.
hybrid.model @needle_control_both vocab(34) width(64) layers(4) trained(64) init_std(0.1) {
  hybrid.mix ratio(1 : 1) {
    hybrid.swla window(64) stride(8) {
      hybrid.gla heads(2) head_dim(32) value_dim(32) gate_bias(0)
    }
    hybrid.softmax heads(2) head_dim(32) position(nope) logit_scale(log_n)
  }
  hybrid.mlp swiglu(128)
}
