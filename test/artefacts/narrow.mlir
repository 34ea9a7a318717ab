// Data of bf16, elements left out in training, and rows so narrow that a buffer is
// smaller than its elements would be in f32, run in every way that must agree.
hybrid.model @narrow vocab(64) width(32) layers(2) tied dtype(bf16) trained(64) dropout(0.1) {
  hybrid.mix ratio(1 : 1) {
    hybrid.softmax heads(2) head_dim(16) position(rope, base = 10000)
    hybrid.gdn heads(2) head_dim(16)
  }
}
