// Every kind of softmax layer, run in every way that must agree.
hybrid.model @softmax vocab(64) width(32) layers(5) tied trained(32) {
  hybrid.layers ["plain", "rotary", "window", "sinks", "scaled"] {
    hybrid.named "plain" {
      hybrid.softmax heads(2) head_dim(16) position(nope)
    }
    hybrid.named "rotary" {
      hybrid.softmax heads(4) kv_heads(2) head_dim(16) position(rope, base = 10000) qk_norm
    }
    hybrid.named "window" {
      hybrid.softmax heads(2) head_dim(16) position(rope) window(11)
    }
    hybrid.named "sinks" {
      hybrid.softmax heads(2) head_dim(16) position(rope) window(9) sinks(3)
    }
    hybrid.named "scaled" {
      hybrid.softmax heads(2) head_dim(16) position(nope) logit_scale(log_n, trained = 16)
    }
  }
  hybrid.mlp swiglu(48)
}
