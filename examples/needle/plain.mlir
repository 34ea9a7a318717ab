// The model as it is trained: GLA and NoPE layers in turn, gates that start near 1,
// no short convolution. 0.2 M parameters.
hybrid.model @needle_plain vocab(34) width(64) layers(4) trained(64) init_std(0.1) {
  hybrid.mix ratio(1 : 1) {
    hybrid.gla heads(2) head_dim(32) value_dim(32) gate_bias(8)
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
  hybrid.mlp swiglu(128)
}
