// Gated linear attention and the gated delta rule, plain and in windows, run in
// every way that must agree.
hybrid.model @recurrence vocab(64) width(32) layers(4) trained(64) {
  hybrid.layers ["gla", "gdn", "gla_window", "gdn_window"] {
    hybrid.named "gla" {
      hybrid.gla heads(2) head_dim(16) value_dim(32)
    }
    hybrid.named "gdn" {
      hybrid.gdn heads(2) head_dim(16) value_dim(32)
    }
    hybrid.named "gla_window" {
      hybrid.swla window(32) stride(8) {
        hybrid.gla heads(2) head_dim(16) value_dim(32)
      }
    }
    hybrid.named "gdn_window" {
      hybrid.swla window(32) stride(16) {
        hybrid.gdn heads(2) head_dim(16) value_dim(32)
      }
    }
  }
}
