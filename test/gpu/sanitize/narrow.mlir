// Recurrences in phases, heads of several mixers in a layer, in bf16.
hybrid.model @narrow vocab(64) width(64) layers(3) dtype(bf16) trained(64) {
  hybrid.layers ["gla", "gdn", "heads"] {
    hybrid.named "gla" {
      hybrid.gla heads(1) head_dim(64) value_dim(64)
    }
    hybrid.named "gdn" {
      hybrid.gdn heads(1) head_dim(64) value_dim(128)
    }
    hybrid.named "heads" {
      hybrid.heads total(4) {
        hybrid.softmax heads(2) head_dim(16) position(nope)
        hybrid.softmax heads(1) head_dim(16) position(rope) window(9) sinks(2)
        hybrid.gdn heads(1) head_dim(16)
      }
    }
  }
}
