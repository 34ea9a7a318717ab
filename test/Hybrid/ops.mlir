// Spec operations read and print. The descriptions in SpecOps.td quote this file.
// RUN: hybrid-opt %s | hybrid-opt | FileCheck %s

// CHECK-LABEL: hybrid.model @gdn_nope vocab(256) width(256) layers(8) tied trained(512)
hybrid.model @gdn_nope vocab(256) width(256) layers(8) tied trained(512) {
  // CHECK-NEXT: hybrid.mix ratio(3 : 1) {
  hybrid.mix ratio(3 : 1) {
    // CHECK-NEXT: hybrid.gdn heads(4) head_dim(64){{$}}
    hybrid.gdn heads(4) head_dim(64)
    // CHECK-NEXT: hybrid.softmax heads(4) head_dim(64) position(nope){{$}}
    hybrid.softmax heads(4) head_dim(64) position(nope)
  }
  // CHECK: hybrid.mlp swiglu(512)
  hybrid.mlp swiglu(512)
}

// Optional clauses may stand in any order and print in one.
// CHECK-LABEL: hybrid.model @clauses vocab(256) width(256) layers(12) dtype(f32) trained(512) epsilon(1.0e-06) init_std(0.01) dropout(0.1)
hybrid.model @clauses vocab(256) width(256) layers(12) dropout(0.1) init_std(0.01) epsilon(0.000001) trained(512) dtype(f32) {
  // CHECK-NEXT: hybrid.mix ratio(7 : 1) offset(4) leftover(last_full) {
  hybrid.mix ratio(7 : 1) offset(4) leftover(last_full) {
    // CHECK-NEXT: hybrid.softmax heads(4) head_dim(64) position(rope) window(128)
    hybrid.softmax heads(4) head_dim(64) position(rope) window(128)
    hybrid.softmax heads(4) head_dim(64) position(nope)
  }
}

// CHECK-LABEL: hybrid.model @pattern
hybrid.model @pattern vocab(256) width(256) layers(6) {
  // CHECK-NEXT: hybrid.pattern "LLLG" leftover(last) {
  hybrid.pattern "LLLG" leftover(last) {
    // CHECK-NEXT: hybrid.named "L" {
    hybrid.named "L" {
      hybrid.softmax heads(4) head_dim(64) position(rope) window(128)
    }
    hybrid.named "G" {
      hybrid.softmax heads(4) head_dim(64) position(nope)
    }
  }
}

// CHECK-LABEL: hybrid.model @list
hybrid.model @list vocab(256) width(256) layers(5) {
  // CHECK-NEXT: hybrid.layers ["local", "local", "global", "local", "global"] {
  hybrid.layers ["local", "local", "global", "local", "global"] {
    hybrid.named "local" {
      hybrid.softmax heads(4) head_dim(64) position(rope) window(128)
    }
    hybrid.named "global" {
      hybrid.softmax heads(4) head_dim(64) position(nope)
    }
  }
}

// CHECK-LABEL: hybrid.model @heads
hybrid.model @heads vocab(256) width(256) layers(2) {
  // CHECK-NEXT: hybrid.heads total(8) {
  hybrid.heads total(8) {
    hybrid.softmax heads(4) head_dim(32) position(nope)
    // CHECK: hybrid.softmax heads(4) head_dim(32) position(rope) window(128) sinks(4)
    hybrid.softmax heads(4) head_dim(32) position(rope) window(128) sinks(4)
  }
}

// CHECK-LABEL: hybrid.model @swla
hybrid.model @swla vocab(256) width(256) layers(2) {
  // CHECK-NEXT: hybrid.swla window(4096) stride(1024) {
  hybrid.swla window(4096) stride(1024) {
    // CHECK-NEXT: hybrid.gla heads(4) head_dim(32) value_dim(64){{$}}
    hybrid.gla heads(4) head_dim(32) value_dim(64)
  }
}

// CHECK-LABEL: hybrid.model @softmax
hybrid.model @softmax vocab(256) width(256) layers(2) {
  // CHECK-NEXT: hybrid.softmax heads(8) kv_heads(2) head_dim(64) position(rope, base = 500000) window(128) sinks(4) logit_scale(log_n, trained = 512) qk_norm
  hybrid.softmax heads(8) kv_heads(2) head_dim(64) position(rope, base = 500000) window(128) sinks(4)
      logit_scale(log_n, trained = 512) qk_norm
}

// CHECK-LABEL: hybrid.model @dynamic_ntk
hybrid.model @dynamic_ntk vocab(256) width(256) layers(2) trained(4096) {
  // CHECK-NEXT: hybrid.softmax heads(4) head_dim(64) position(rope, dynamic_ntk = 2) logit_scale(constant, factor = 1.2)
  hybrid.softmax heads(4) head_dim(64) position(rope, dynamic_ntk = 2.0) logit_scale(constant, factor = 1.2)
}

// CHECK-LABEL: hybrid.model @gla
hybrid.model @gla vocab(256) width(256) layers(2) {
  // CHECK-NEXT: hybrid.gla heads(4) head_dim(32) value_dim(64) conv(4) output(norm) gate_normalizer(8) gate_rank(8) gate_bias(4){{$}}
  hybrid.gla heads(4) head_dim(32) value_dim(64) conv(4) output(norm)
      gate_normalizer(8) gate_rank(8) gate_bias(4)
}

// CHECK-LABEL: hybrid.model @gdn
hybrid.model @gdn vocab(256) width(256) layers(2) {
  // CHECK-NEXT: hybrid.gdn heads(6) head_dim(64) value_dim(128) conv(off) output(gate) gate_bias(-4.5) negative_eigenvalues
  hybrid.gdn heads(6) head_dim(64) value_dim(128) conv(off) output(gate)
      gate_bias(-4.5) negative_eigenvalues
}

// CHECK-LABEL: hybrid.model @delta_net
hybrid.model @delta_net vocab(256) width(256) layers(2) {
  // CHECK-NEXT: hybrid.delta_net heads(8) head_dim(64) conv(off) output(norm_gate){{$}}
  hybrid.delta_net heads(8) head_dim(64) conv(off) output(norm_gate)
}
