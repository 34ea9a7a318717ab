// Sizes shrink, structure and clauses stay.
// RUN: hybrid-opt %s -hybrid-shrink-model | FileCheck %s

// The example of the pass description.
// CHECK-LABEL: hybrid.model @m vocab(96) width(64) layers(4) trained(64) {
// CHECK-NEXT:    hybrid.mix ratio(3 : 1) {
// CHECK-NEXT:      hybrid.swla window(64) stride(16) {
// CHECK-NEXT:        hybrid.gla heads(2) head_dim(16) value_dim(32)
// CHECK-NEXT:      }
// CHECK-NEXT:      hybrid.softmax heads(2) head_dim(16) position(nope) logit_scale(log_n)
// CHECK-NEXT:    }
// CHECK-NEXT:    hybrid.mlp swiglu(96)
hybrid.model @m vocab(128256) width(1536) layers(12) trained(4096) {
  hybrid.mix ratio(3 : 1) {
    hybrid.swla window(4096) stride(1024) {
      hybrid.gla heads(4) head_dim(192) value_dim(384)
    }
    hybrid.softmax heads(12) head_dim(128) position(nope) logit_scale(log_n)
  }
  hybrid.mlp swiglu(5376)
}

// Groups keep their ratio and add up; a window of 128 of 4096 stays a window.
// CHECK-LABEL: hybrid.model @heads vocab(96) width(64) layers(2) trained(64) {
// CHECK-NEXT:    hybrid.heads total(10) {
// CHECK-NEXT:      hybrid.softmax heads(8) kv_heads(2) head_dim(16) position(nope)
// CHECK-NEXT:      hybrid.softmax heads(2) head_dim(16) position(rope, base = 500000) window(8) sinks(2)
hybrid.model @heads vocab(128256) width(1536) layers(12) trained(4096) {
  hybrid.heads total(22) {
    hybrid.softmax heads(16) kv_heads(4) head_dim(128) position(nope)
    hybrid.softmax heads(6) head_dim(128) position(rope, base = 500000) window(128) sinks(4)
  }
}

// Leftover layers are kept, and so is what is small.
// CHECK-LABEL: hybrid.model @leftover vocab(32) width(32) layers(5) {
// CHECK:         hybrid.gdn heads(1) head_dim(8) value_dim(24)
hybrid.model @leftover vocab(32) width(32) layers(5) {
  hybrid.mix ratio(3 : 1) leftover(last_full) {
    hybrid.gdn heads(1) head_dim(8) value_dim(24)
    hybrid.softmax heads(1) head_dim(8) position(nope)
  }
}
