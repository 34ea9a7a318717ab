// One layer of every family with 33 heads, for a decoding step of many sequences.
hybrid.model @decode vocab(32) width(24) layers(4) tied {
  hybrid.layers ["softmax", "window", "gla", "gdn"] {
    hybrid.named "softmax" {
      hybrid.softmax heads(33) head_dim(8) position(nope)
    }
    hybrid.named "window" {
      hybrid.softmax heads(33) head_dim(8) position(nope) window(2)
    }
    hybrid.named "gla" {
      hybrid.gla heads(33) head_dim(8)
    }
    hybrid.named "gdn" {
      hybrid.gdn heads(33) head_dim(8)
    }
  }
}
