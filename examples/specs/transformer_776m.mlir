// The Transformer that the mixes are measured against: rotary positions, full
// attention in every layer.
hybrid.model @transformer_776m vocab(128256) width(1536) layers(12) trained(4096) dtype(bf16) {
  hybrid.softmax heads(12) head_dim(128) position(rope, base = 10000)
  hybrid.mlp swiglu(5376)
}
