// What hybrid-build-graph refuses.
// RUN: hybrid-opt %s -hybrid-build-graph -split-input-file -verify-diagnostics

module {
  // expected-note @+1 {{another model is here}}
  hybrid.stack @a vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
    hybrid.layer 0 {
      hybrid.softmax heads(2) head_dim(32) position(nope)
    }
  }
  // expected-error @+1 {{has 2 models where one is expected, because the entry points are named after what they do; write one hybrid.model per file}}
  hybrid.stack @b vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
    hybrid.layer 0 {
      hybrid.softmax heads(2) head_dim(32) position(nope)
    }
  }
}

// -----

// expected-error @+1 {{has no hybrid.model; write one, as docs/spec-language.md shows}}
module {
}
