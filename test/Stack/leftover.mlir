// CFG-13: which layers are full when the depth is no multiple of the period.
// Full layers are softmax here, the others recurrent.
// RUN: hybrid-opt %s -hybrid-expand-stack -verify-diagnostics | FileCheck %s

// 3 : 1 over 10 layers: layers 3 and 7.
// CHECK-LABEL: hybrid.stack @ten
// CHECK:       hybrid.layer 3 {
// CHECK-NEXT:    hybrid.softmax
// CHECK:       hybrid.layer 4 {
// CHECK-NEXT:    hybrid.recurrent
// CHECK:       hybrid.layer 7 {
// CHECK-NEXT:    hybrid.softmax
// CHECK-NOT:     hybrid.softmax
hybrid.model @ten vocab(256) width(64) layers(10) {
  hybrid.mix ratio(3 : 1) {
    hybrid.gla heads(2) head_dim(16)
    hybrid.softmax heads(2) head_dim(16) position(nope)
  }
}

// Over 3 layers, and over 1: none.
// CHECK-LABEL: hybrid.stack @three
// CHECK-NOT:     hybrid.softmax
hybrid.model @three vocab(256) width(64) layers(3) {
  // expected-warning @+1 {{ratio 3 : 1 over 3 layers leaves a mixer without a layer; set offset(n) below 3 or leftover(last_full)}}
  hybrid.mix ratio(3 : 1) {
    hybrid.gla heads(2) head_dim(16)
    // expected-note @+1 {{no layer has this mixer}}
    hybrid.softmax heads(2) head_dim(16) position(nope)
  }
}
// CHECK-LABEL: hybrid.stack @one
// CHECK-NOT:     hybrid.softmax
hybrid.model @one vocab(256) width(64) layers(1) {
  // expected-warning @+1 {{ratio 3 : 1 over 1 layers leaves a mixer without a layer}}
  hybrid.mix ratio(3 : 1) {
    hybrid.gla heads(2) head_dim(16)
    // expected-note @+1 {{no layer has this mixer}}
    hybrid.softmax heads(2) head_dim(16) position(nope)
  }
}

// The last layer is forced to be full (Kimi-Linear: 27 layers, 3 : 1).
// CHECK-LABEL: hybrid.stack @last_full
// CHECK:       hybrid.layer 3 {
// CHECK-NEXT:    hybrid.softmax
// CHECK:       hybrid.layer 6 {
// CHECK-NEXT:    hybrid.softmax
hybrid.model @last_full vocab(256) width(64) layers(7) {
  hybrid.mix ratio(3 : 1) leftover(last_full) {
    hybrid.gla heads(2) head_dim(16)
    hybrid.softmax heads(2) head_dim(16) position(nope)
  }
}

// Without leftover layers last_full changes nothing, wherever the offset is.
// CHECK-LABEL: hybrid.stack @no_leftover
// CHECK:       hybrid.layer 0 {
// CHECK-NEXT:    hybrid.softmax
// CHECK:       hybrid.layer 3 {
// CHECK-NEXT:    hybrid.recurrent
hybrid.model @no_leftover vocab(256) width(64) layers(4) {
  hybrid.mix ratio(3 : 1) offset(0) leftover(last_full) {
    hybrid.gla heads(2) head_dim(16)
    hybrid.softmax heads(2) head_dim(16) position(nope)
  }
}

// 24 : 1 over 24 layers with an offset: one full layer there.
// CHECK-LABEL: hybrid.stack @twenty_four
// CHECK-NOT:     hybrid.softmax
// CHECK:       hybrid.layer 23 {
// CHECK-NEXT:    hybrid.softmax
hybrid.model @twenty_four vocab(256) width(64) layers(24) {
  hybrid.mix ratio(24 : 1) offset(23) {
    hybrid.gla heads(2) head_dim(16)
    hybrid.softmax heads(2) head_dim(16) position(nope)
  }
}

// 1 : 3, and full layers that wrap around the period's end.
// CHECK-LABEL: hybrid.stack @wrapped
// CHECK:       hybrid.layer 0 {
// CHECK-NEXT:    hybrid.softmax
// CHECK:       hybrid.layer 1 {
// CHECK-NEXT:    hybrid.softmax
// CHECK:       hybrid.layer 2 {
// CHECK-NEXT:    hybrid.recurrent
// CHECK:       hybrid.layer 3 {
// CHECK-NEXT:    hybrid.softmax
hybrid.model @wrapped vocab(256) width(64) layers(4) {
  hybrid.mix ratio(1 : 3) offset(3) {
    hybrid.gla heads(2) head_dim(16)
    hybrid.softmax heads(2) head_dim(16) position(nope)
  }
}

// A pattern goes on, or ends in its last letter (Exaone 4).
// CHECK-LABEL: hybrid.stack @cut
// CHECK:       hybrid.layer 2 {
// CHECK-NEXT:    hybrid.softmax
// CHECK:       hybrid.layer 4 {
// CHECK-NEXT:    hybrid.recurrent
hybrid.model @cut vocab(256) width(64) layers(5) {
  hybrid.pattern "LLG" {
    hybrid.named "L" {
      hybrid.gla heads(2) head_dim(16)
    }
    hybrid.named "G" {
      hybrid.softmax heads(2) head_dim(16) position(nope)
    }
  }
}
// CHECK-LABEL: hybrid.stack @last
// CHECK:       hybrid.layer 4 {
// CHECK-NEXT:    hybrid.softmax
hybrid.model @last vocab(256) width(64) layers(5) {
  hybrid.pattern "LLG" leftover(last) {
    hybrid.named "L" {
      hybrid.gla heads(2) head_dim(16)
    }
    hybrid.named "G" {
      hybrid.softmax heads(2) head_dim(16) position(nope)
    }
  }
}
