// The Transformer that the mixes are measured against: rotary positions, full
// attention in every layer.
hybrid.model @transformer_376m vocab(128256) width(1024) layers(8) trained(4096) dtype(bf16) {
  hybrid.softmax heads(8) head_dim(128) position(rope, base = 10000)
  hybrid.mlp swiglu(3584)
}
