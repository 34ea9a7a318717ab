// Stack operations read and print. The descriptions in StackOps.td quote this file.
// RUN: hybrid-opt %s | hybrid-opt | FileCheck %s

// CHECK-LABEL: hybrid.stack @tiny vocab(256) width(64) trained(128) epsilon(1.0e-05) init_std(0.02) tied {
hybrid.stack @tiny vocab(256) width(64) trained(128) epsilon(1.0e-5)
    init_std(0.02) tied {
  // CHECK-NEXT: hybrid.layer 0 {
  hybrid.layer 0 {
    // CHECK-NEXT: hybrid.softmax heads(2) kv_heads(2) head_dim(32) position(nope)
    hybrid.softmax heads(2) kv_heads(2) head_dim(32) position(nope)
    // CHECK-NEXT: hybrid.mlp swiglu(128)
    hybrid.mlp swiglu(128)
  }
}

// CHECK-LABEL: hybrid.stack @groups
// CHECK-SAME: init_std(0.02) dropout(0.1) {
hybrid.stack @groups vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) dropout(0.1) {
  hybrid.layer 0 {
    // CHECK: hybrid.recurrent "gla" heads(4) head_dim(32) value_dim(64) update(additive) decay(channel) gate(log_sigmoid) gate_normalizer(16) gate_rank(16) beta(0) conv(0) output(norm_gate) gate_bias(0) window(512) stride(128)
    hybrid.recurrent "gla" heads(4) head_dim(32) value_dim(64) update(additive)
        decay(channel) gate(log_sigmoid) gate_normalizer(16) gate_rank(16)
        beta(0) conv(0) output(norm_gate) gate_bias(0)
        window(512) stride(128)
    // CHECK-NEXT: hybrid.recurrent "gdn" heads(2) head_dim(32) value_dim(32) update(delta) decay(scalar) gate(softplus) gate_normalizer(1) gate_rank(0) beta(1) qk_norm(l2) conv(4) silu output(norm_gate){{$}}
    hybrid.recurrent "gdn" heads(2) head_dim(32) value_dim(32) update(delta)
        decay(scalar) gate(softplus) gate_normalizer(1) gate_rank(0)
        beta(1) qk_norm(l2) conv(4) silu output(norm_gate)
  }
}
