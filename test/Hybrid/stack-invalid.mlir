// One case per verifier branch of the stack operations.
// RUN: hybrid-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{'hybrid.stack' op vocab is 0; write a number from 1 to 1048576}}
hybrid.stack @vocab vocab(0) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
  hybrid.layer 0 {
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
}

// -----

// expected-error @+1 {{'hybrid.stack' op width 4 is not supported; write a multiple of 8 from 8}}
hybrid.stack @width vocab(256) width(4) trained(0) epsilon(1.0e-5) init_std(0.02) {
  hybrid.layer 0 {
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
}

// -----

// expected-error @+1 {{'hybrid.stack' op trained is -1; write a number from 0 to 2147483647}}
hybrid.stack @trained vocab(256) width(64) trained(-1) epsilon(1.0e-5) init_std(0.02) {
  hybrid.layer 0 {
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
}

// -----

// expected-error @+1 {{'hybrid.stack' op has no layers; write at least hybrid.layer 0}}
hybrid.stack @none vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
}

// -----

hybrid.stack @index vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
  // expected-error @+1 {{'hybrid.layer' op has index 1 where layer 0 is expected; number the layers from 0 in order}}
  hybrid.layer 1 {
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
}

// -----

hybrid.stack @entry vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
  // expected-error @+1 {{'func.func' op stands where a hybrid.layer is expected}}
  func.func private @f()
}

// -----

hybrid.stack @no_group vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
  // expected-error @+1 {{'hybrid.layer' op has no group of heads; write hybrid.softmax or hybrid.recurrent first}}
  hybrid.layer 0 {
    hybrid.mlp swiglu(64)
  }
}

// -----

hybrid.stack @named vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
  hybrid.layer 0 {
    // expected-error @+1 {{'hybrid.gla' op stands where hybrid.softmax, hybrid.recurrent or a last hybrid.mlp is expected}}
    hybrid.gla heads(2) head_dim(32)
  }
}

// -----

hybrid.stack @beta vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
  hybrid.layer 0 {
    // expected-error @+1 {{'hybrid.recurrent' op has update delta with beta 0; a delta rule needs a write strength above 0, an additive update has beta(0)}}
    hybrid.recurrent "gdn" heads(2) head_dim(32) value_dim(32) update(delta)
        decay(scalar) gate(softplus) gate_normalizer(1) gate_rank(0)
        beta(0) qk_norm(l2) conv(4) silu output(norm_gate)
  }
}

// -----

hybrid.stack @gate vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
  hybrid.layer 0 {
    // expected-error @+1 {{'hybrid.recurrent' op has decay none with gate softplus; a decay and its gate go together}}
    hybrid.recurrent "gdn" heads(2) head_dim(32) value_dim(32) update(delta)
        decay(none) gate(softplus) gate_normalizer(1) gate_rank(0)
        beta(1) qk_norm(l2) conv(4) silu output(norm_gate)
  }
}

// -----

hybrid.stack @rank vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
  hybrid.layer 0 {
    // expected-error @+1 {{'hybrid.recurrent' op has gate log_sigmoid with rank 0 and normalizer 16; both must be above 0}}
    hybrid.recurrent "gla" heads(2) head_dim(32) value_dim(32) update(additive)
        decay(channel) gate(log_sigmoid) gate_normalizer(16) gate_rank(0)
        beta(0) conv(0) output(norm_gate)
  }
}

// -----

hybrid.stack @history vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
  hybrid.layer 0 {
    // expected-error @+1 {{'hybrid.recurrent' op stride 3 does not divide window 8; write stride(1) or window(9)}}
    hybrid.recurrent "gla" heads(2) head_dim(32) value_dim(32) update(additive)
        decay(channel) gate(log_sigmoid) gate_normalizer(16) gate_rank(16)
        beta(0) conv(0) output(norm_gate) window(8) stride(3)
  }
}
