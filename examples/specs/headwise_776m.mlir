// Head-wise, one to one: in every layer half of the heads are full and NoPE, half
// are rotary in a window of 128.
hybrid.model @headwise_776m vocab(128256) width(1536) layers(12) trained(4096) dtype(bf16) {
  hybrid.heads total(12) {
    hybrid.softmax heads(6) head_dim(128) position(nope)
    hybrid.softmax heads(6) head_dim(128) position(rope, base = 10000) window(128)
  }
  hybrid.mlp swiglu(5376)
}
