// Every column of the mixer table reaches the graph.
// RUN: hybrid-opt %s -hybrid-build-graph | FileCheck %s

hybrid.stack @m vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
  hybrid.layer 0 {
    hybrid.recurrent "gla" heads(2) head_dim(16) value_dim(32) update(additive)
        decay(channel) gate(log_sigmoid) gate_normalizer(16) gate_rank(8)
        beta(0) conv(0) output(norm_gate) gate_bias(4)
  }
  hybrid.layer 1 {
    hybrid.recurrent "gdn" heads(2) head_dim(16) value_dim(32) update(delta)
        decay(scalar) gate(softplus) gate_normalizer(1) gate_rank(0)
        beta(2) qk_norm(l2) conv(4) silu output(gate)
  }
  hybrid.layer 2 {
    hybrid.recurrent "gla" heads(2) head_dim(16) value_dim(16) update(additive)
        decay(channel) gate(log_sigmoid) gate_normalizer(16) gate_rank(8)
        beta(0) conv(0) output(plain) gate_bias(0) window(8) stride(2)
  }
  hybrid.layer 3 {
    hybrid.recurrent "delta_net" heads(2) head_dim(16) value_dim(16)
        update(delta) decay(none) gate(none) gate_normalizer(1) gate_rank(0)
        beta(1) qk_norm(l2) conv(0) silu output(norm)
  }
}

// TRN-06: gates' biases, A_log and dt_bias have no weight decay; matrices do.
// CHECK:      hybrid.params = [
// CHECK-SAME:   {decay = true, init = "normal(0.02)", path = "layers.0.mixer.gate_down_proj.weight", shape = array<i64: 8, 64>}
// CHECK-SAME:   {decay = true, init = "normal(0.02)", path = "layers.0.mixer.gate_up_proj.weight", shape = array<i64: 32, 8>}
// CHECK-SAME:   {decay = false, init = "constant(4)", path = "layers.0.mixer.gate_up_proj.bias", shape = array<i64: 32>}
// CHECK-SAME:   {decay = false, init = "ones", path = "layers.0.mixer.o_norm.weight", shape = array<i64: 32>}
// CHECK-SAME:   {decay = true, init = "normal(0.2886751345948129)", path = "layers.1.mixer.q_conv.weight", shape = array<i64: 32, 4>}
// CHECK-SAME:   {decay = false, init = "inverse_softplus_log_uniform(0.001,0.1,0.0001)", path = "layers.1.mixer.dt_bias", shape = array<i64: 2>}
// CHECK-SAME:   {decay = false, init = "log_uniform(0,16)", path = "layers.1.mixer.A_log", shape = array<i64: 2>}
// CHECK-SAME:   {decay = false, init = "zeros", path = "layers.2.mixer.gate_up_proj.bias"

// Additive, decay per key channel, norm and gate on the output; no convolution.
// CHECK-LABEL: func.func @loss(
// CHECK:         %[[Q:.+]] = hybrid.reshape %{{.+}} -> tensor<?x2x16xf32>
// CHECK:         %[[K:.+]] = hybrid.reshape %{{.+}} -> tensor<?x2x16xf32>
// CHECK:         %[[V:.+]] = hybrid.reshape %{{.+}} -> tensor<?x2x32xf32>
// CHECK:         %[[LOW:.+]] = hybrid.product {{.*}} -> tensor<?x8xf32>
// CHECK-NEXT:    %[[UP:.+]] = hybrid.product %[[LOW]], {{.*}} -> tensor<?x32xf32>
// CHECK-NEXT:    %[[Z:.+]] = hybrid.add %[[UP]], %{{.+}} : tensor<?x32xf32>, tensor<32xf32>
// CHECK-NEXT:    %[[LS:.+]] = hybrid.log_sigmoid %[[Z]]
// CHECK-NEXT:    %[[SC:.+]] = hybrid.scale %[[LS]] by 6.250000e-02
// CHECK-NEXT:    %[[G:.+]] = hybrid.reshape %[[SC]] : tensor<?x32xf32> -> tensor<?x2x16xf32>
// CHECK-NEXT:    %[[O:.+]] = hybrid.recurrence additive %[[Q]], %[[K]], %[[V]], %{{.+}} decay(%[[G]]) scale 2.500000e-01 :
// CHECK-NEXT:    %[[N:.+]] = hybrid.normalize rms %[[O]] epsilon 1.000000e-05 : tensor<?x2x32xf32>
// CHECK-NEXT:    %[[NW:.+]] = hybrid.mul %[[N]], %{{.+}} : tensor<?x2x32xf32>, tensor<32xf32>
// CHECK-NEXT:    %[[NJ:.+]] = hybrid.reshape %[[NW]]
// CHECK-NEXT:    %[[GP:.+]] = hybrid.product
// CHECK-NEXT:    %[[GS:.+]] = hybrid.silu %[[GP]]
// CHECK-NEXT:    hybrid.mul %[[NJ]], %[[GS]]

// Delta rule: convolution, SiLU, unit keys, one decay per head, beta up to 2,
// gate without a norm.
// CHECK:         %[[CONV:.+]] = hybrid.short_conv
// CHECK-NEXT:    hybrid.silu %[[CONV]]
// CHECK:         %[[QN:.+]] = hybrid.normalize l2 %{{.+}} epsilon 9.9999999999999995E-7 : tensor<?x2x16xf32>
// CHECK-NEXT:    %[[KN:.+]] = hybrid.normalize l2
// CHECK:         %[[A:.+]] = hybrid.product {{.*}} -> tensor<?x2xf32>
// CHECK-NEXT:    %[[AB:.+]] = hybrid.add %[[A]], %{{.+}} : tensor<?x2xf32>, tensor<2xf32>
// CHECK-NEXT:    %[[SP:.+]] = hybrid.softplus %[[AB]]
// CHECK-NEXT:    %[[ZERO:.+]] = hybrid.fill 0.000000e+00
// CHECK-NEXT:    %[[LOGA:.+]] = hybrid.add %[[ZERO]], %{{.+}} : tensor<?x2xf32>, tensor<2xf32>
// CHECK-NEXT:    %[[RATE:.+]] = hybrid.exp %[[LOGA]]
// CHECK-NEXT:    %[[MAG:.+]] = hybrid.mul %[[SP]], %[[RATE]]
// CHECK-NEXT:    %[[NEG:.+]] = hybrid.neg %[[MAG]]
// CHECK-NEXT:    %[[D:.+]] = hybrid.reshape %[[NEG]] : tensor<?x2xf32> -> tensor<?x2x1xf32>
// CHECK:         %[[SIG:.+]] = hybrid.sigmoid
// CHECK-NEXT:    %[[B:.+]] = hybrid.scale %[[SIG]] by 2.000000e+00
// CHECK-NEXT:    %[[O1:.+]] = hybrid.recurrence delta %[[QN]], %[[KN]], %{{.+}}, %{{.+}} decay(%[[D]]) beta(%[[B]]) scale 2.500000e-01 :
// CHECK-NEXT:    %[[O1J:.+]] = hybrid.reshape %[[O1]]

// Bounded history; nothing on the output.
// CHECK:         %[[O2:.+]] = hybrid.recurrence additive {{.*}} window 8 stride 2 :
// CHECK-NEXT:    %[[O2J:.+]] = hybrid.reshape %[[O2]]
// CHECK-NEXT:    hybrid.product %[[O2J]]

// No decay, and SiLU without a convolution in front of it.
// CHECK:         %[[Q3:.+]] = hybrid.product
// CHECK-NEXT:    %[[S3:.+]] = hybrid.silu %[[Q3]]
// CHECK:         %[[B3:.+]] = hybrid.sigmoid
// CHECK-NEXT:    hybrid.recurrence delta %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} beta(%[[B3]]) scale 2.500000e-01 :

// States: one matrix per head, one per open window, and the convolution's rows.
// CHECK-LABEL: func.func @extend(
// CHECK-SAME:    tensor<?x2x16x32xf32, #hybrid.slots> {hybrid.path = "layers.0.mixer.state", hybrid.role = "state"}
// CHECK-SAME:    tensor<?x3x32xf32, #hybrid.slots> {hybrid.path = "layers.1.mixer.q_conv_state", hybrid.role = "state"}
// CHECK-SAME:    tensor<?x3x64xf32, #hybrid.slots> {hybrid.path = "layers.1.mixer.v_conv_state", hybrid.role = "state"}
// CHECK-SAME:    tensor<?x4x2x16x16xf32, #hybrid.slots> {hybrid.path = "layers.2.mixer.state", hybrid.role = "state"}
// CHECK:         hybrid.recurrence additive {{.*}} initial(%{{.+}}) scale 2.500000e-01 window 8 stride 2
