// Head-wise, one to one: in every layer half of the heads are full and NoPE, half
// are rotary in a window of 128.
hybrid.model @headwise_376m vocab(128256) width(1024) layers(8) trained(4096) dtype(bf16) {
  hybrid.heads total(8) {
    hybrid.softmax heads(4) head_dim(128) position(nope)
    hybrid.softmax heads(4) head_dim(128) position(rope, base = 10000) window(128)
  }
  hybrid.mlp swiglu(3584)
}
