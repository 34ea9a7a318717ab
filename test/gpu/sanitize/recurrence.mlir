// Recurrences in f32: decays per channel and per head, the delta rule with and
// without decays, and windows of both kinds.
hybrid.model @recurrence vocab(64) width(32) layers(5) trained(64) {
  hybrid.layers ["gla", "gdn", "delta", "gla_window", "gdn_window"] {
    hybrid.named "gla" {
      hybrid.gla heads(1) head_dim(32) value_dim(64)
    }
    hybrid.named "gdn" {
      hybrid.gdn heads(1) head_dim(64) value_dim(32)
    }
    hybrid.named "delta" {
      hybrid.delta_net heads(2) head_dim(16)
    }
    hybrid.named "gla_window" {
      hybrid.swla window(32) stride(8) {
        hybrid.gla heads(1) head_dim(16) value_dim(32)
      }
    }
    hybrid.named "gdn_window" {
      hybrid.swla window(32) stride(16) {
        hybrid.gdn heads(1) head_dim(16) value_dim(32)
      }
    }
  }
}
