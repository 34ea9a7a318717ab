// Softmax in f32: grouped heads, windows with sinks, a rotation, scaled logits.
hybrid.model @softmax vocab(64) width(64) layers(3) tied trained(32) {
  hybrid.layers ["grouped", "sinks", "scaled"] {
    hybrid.named "grouped" {
      hybrid.softmax heads(2) kv_heads(1) head_dim(32) position(rope, base = 10000) qk_norm
    }
    hybrid.named "sinks" {
      hybrid.softmax heads(2) head_dim(16) position(rope) window(9) sinks(3)
    }
    hybrid.named "scaled" {
      hybrid.softmax heads(1) head_dim(64) position(nope) logit_scale(log_n, trained = 16)
    }
  }
  hybrid.mlp swiglu(48)
}
