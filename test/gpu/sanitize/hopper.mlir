// What bf16 has of its own on sm_90a: products and softmax of warpgroups, at both
// head dims, with grouped heads, windows and sinks; and dropout.
hybrid.model @hopper vocab(64) width(128) layers(3) dtype(bf16) trained(64) dropout(0.1) {
  hybrid.layers ["wide", "narrow", "sinks"] {
    hybrid.named "wide" {
      hybrid.softmax heads(1) head_dim(128) position(nope)
    }
    hybrid.named "narrow" {
      hybrid.softmax heads(2) kv_heads(1) head_dim(64) position(rope, base = 10000)
    }
    hybrid.named "sinks" {
      hybrid.softmax heads(2) head_dim(64) position(rope) window(40) sinks(3)
    }
  }
  hybrid.mlp swiglu(64)
}
