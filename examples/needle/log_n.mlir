// plain with NoPE logits that grow with log n beyond the trained length.
hybrid.model @needle_log_n vocab(34) width(64) layers(4) trained(64) init_std(0.1) {
  hybrid.mix ratio(1 : 1) {
    hybrid.gla heads(2) head_dim(32) value_dim(32) gate_bias(8)
    hybrid.softmax heads(2) head_dim(32) position(nope) logit_scale(log_n)
  }
  hybrid.mlp swiglu(128)
}
