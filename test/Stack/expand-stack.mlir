// Ratios, patterns, lists, head groups and defaults are written out.
// RUN: hybrid-opt %s -hybrid-expand-stack | FileCheck %s
// RUN: hybrid-opt %s -hybrid-expand-stack | hybrid-opt -hybrid-expand-stack | FileCheck %s

// The example of the pass description.
// CHECK-LABEL: hybrid.stack @mix vocab(256) width(64) trained(0) epsilon(1.0e-05) init_std(0.02) {
// CHECK-NEXT:    hybrid.layer 0 {
// CHECK-NEXT:      hybrid.recurrent "gdn" heads(2) head_dim(32) value_dim(32) update(delta) decay(scalar) gate(softplus) gate_normalizer(1) gate_rank(0) beta(1) qk_norm(l2) conv(4) silu output(norm_gate){{$}}
// CHECK-NEXT:    }
// CHECK-NEXT:    hybrid.layer 1 {
// CHECK-NEXT:      hybrid.softmax heads(2) kv_heads(2) head_dim(32) position(nope){{$}}
// CHECK-NEXT:    }
// CHECK-NEXT:  }
hybrid.model @mix vocab(256) width(64) layers(2) {
  hybrid.mix ratio(1 : 1) {
    hybrid.gdn heads(2) head_dim(32)
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
}

// One mixer for all layers, and the MLP in each.
// CHECK-LABEL: hybrid.stack @pure vocab(512) width(64) trained(256) epsilon(1.0e-06) init_std(0.01) tied {
// CHECK-NEXT:    hybrid.layer 0 {
// CHECK-NEXT:      hybrid.softmax heads(4) kv_heads(2) head_dim(16) position(rope, base = 10000) logit_scale(log_n, trained = 256) qk_norm
// CHECK-NEXT:      hybrid.mlp swiglu(128)
// CHECK-NEXT:    }
// CHECK-NEXT:    hybrid.layer 1 {
// CHECK-NEXT:      hybrid.softmax
// CHECK-NEXT:      hybrid.mlp swiglu(128)
hybrid.model @pure vocab(512) width(64) layers(2) tied trained(256) epsilon(0.000001) init_std(0.01) {
  hybrid.softmax heads(4) kv_heads(2) head_dim(16) position(rope) logit_scale(log_n) qk_norm
  hybrid.mlp swiglu(128)
}

// A trained length of its own is kept.
// CHECK-LABEL: hybrid.stack @own_length
// CHECK: hybrid.softmax {{.*}} position(nope) window(8) sinks(2) logit_scale(log_n, trained = 64)
hybrid.model @own_length vocab(512) width(64) layers(1) trained(256) {
  hybrid.softmax heads(4) head_dim(16) position(nope) window(8) sinks(2) logit_scale(log_n, trained = 64)
}

// Every attribute of a named recurrence replaces its row's default.
// CHECK-LABEL: hybrid.stack @rows
// CHECK: hybrid.recurrent "gla" heads(2) head_dim(16) value_dim(32) update(additive) decay(channel) gate(log_sigmoid) gate_normalizer(8) gate_rank(4) beta(0) conv(3) silu output(plain) gate_bias(5) window(8) stride(4)
// CHECK: hybrid.recurrent "gla" heads(2) head_dim(16) value_dim(16) update(additive) decay(channel) gate(log_sigmoid) gate_normalizer(16) gate_rank(16) beta(0) conv(0) output(norm_gate) gate_bias(0){{$}}
// CHECK: hybrid.recurrent "gdn" heads(2) head_dim(16) value_dim(32) update(delta) decay(scalar) gate(softplus) gate_normalizer(1) gate_rank(0) beta(2) qk_norm(l2) conv(0) silu output(gate) gate_bias(-4.5){{$}}
// CHECK: hybrid.recurrent "delta_net" heads(2) head_dim(16) value_dim(16) update(delta) decay(none) gate(none) gate_normalizer(1) gate_rank(0) beta(1) qk_norm(l2) conv(4) silu output(norm){{$}}
hybrid.model @rows vocab(256) width(64) layers(4) {
  hybrid.layers ["a", "b", "c", "d"] {
    hybrid.named "d" {
      hybrid.delta_net heads(2) head_dim(16)
    }
    hybrid.named "a" {
      hybrid.swla window(8) stride(4) {
        hybrid.gla heads(2) head_dim(16) value_dim(32) conv(3) output(plain) gate_normalizer(8) gate_rank(4) gate_bias(5)
      }
    }
    hybrid.named "b" {
      hybrid.gla heads(2) head_dim(16)
    }
    hybrid.named "c" {
      hybrid.gdn heads(2) head_dim(16) value_dim(32) conv(off) output(gate) gate_bias(-4.5) negative_eigenvalues
    }
  }
}

// Head groups stand in one layer in their order.
// CHECK-LABEL: hybrid.stack @heads
// CHECK-NEXT:    hybrid.layer 0 {
// CHECK-NEXT:      hybrid.softmax heads(1) kv_heads(1) head_dim(16) position(nope)
// CHECK-NEXT:      hybrid.recurrent "gla" heads(3) {{.*}} window(8) stride(4)
// CHECK-NEXT:    }
hybrid.model @heads vocab(256) width(64) layers(1) {
  hybrid.heads total(4) {
    hybrid.softmax heads(1) head_dim(16) position(nope)
    hybrid.swla window(8) stride(4) {
      hybrid.gla heads(3) head_dim(16)
    }
  }
}
