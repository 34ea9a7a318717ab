// Every attribute of softmax attention reaches the graph.
// RUN: hybrid-opt %s -hybrid-build-graph | FileCheck %s

// CHECK-DAG: [[RING:#[a-z0-9]+]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s2 + s5 + 17)>
// CHECK-DAG: [[FULL:#[a-z0-9]+]] = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s4)>

hybrid.stack @m vocab(256) width(64) trained(128) epsilon(1.0e-5) init_std(0.02) tied {
  hybrid.layer 0 {
    hybrid.softmax heads(4) kv_heads(2) head_dim(16)
        position(rope, base = 500000, dynamic_ntk = 2) window(16) sinks(2)
        logit_scale(log_n, trained = 64) qk_norm
  }
  hybrid.layer 1 {
    hybrid.softmax heads(2) kv_heads(1) head_dim(16) position(rope, base = 10000)
        logit_scale(constant, factor = 2)
    hybrid.softmax heads(1) kv_heads(1) head_dim(64) position(nope)
  }
}

// Tied: the embedding is the head and there is no other.
// CHECK-NOT:     "head.weight"
// CHECK-LABEL: func.func @loss(
// CHECK-SAME:    %[[TABLE:[a-z0-9]+]]: tensor<256x64xf32>

// q: norm per head, rotation, then the log-n factor; k without the factor.
// CHECK:         %[[Q:.+]] = hybrid.reshape %{{.+}} -> tensor<?x4x16xf32>
// CHECK-NEXT:    %[[QN:.+]] = hybrid.normalize rms %[[Q]]
// CHECK-NEXT:    %[[QW:.+]] = hybrid.mul %[[QN]], %{{.+}} : tensor<?x4x16xf32>, tensor<16xf32>
// CHECK-NEXT:    %[[QR:.+]] = hybrid.rotary %[[QW]], %{{.+}} base 5.000000e+05 dim 16 ntk 2.000000e+00 original 128
// CHECK:         %[[K:.+]] = hybrid.rotary %{{.+}} base 5.000000e+05 dim 16 ntk 2.000000e+00 original 128 : tensor<?x2x16xf32>
// CHECK:         %[[QS:.+]] = hybrid.log_n_scale %[[QR]], %{{.+}} trained 64
// CHECK:         hybrid.attention %[[QS]], %[[K]], %{{.+}} scale 2.500000e-01 windows [16, 16, 16, 16] sinks [2, 2, 2, 2]

// ROP-13: each layer has a base and a scaling of its own. A constant factor is
// folded into the scale; NoPE is not rotated; groups stand side by side in front
// of one projection.
// CHECK:         hybrid.rotary %{{.+}} base 1.000000e+04 dim 16 : tensor<?x2x16xf32>
// CHECK:         %[[O0:.+]], %{{.+}} = hybrid.attention {{.*}} scale 5.000000e-01 windows [0, 0] sinks [0, 0]
// CHECK-NEXT:    %[[J0:.+]] = hybrid.reshape %[[O0]]
// CHECK-NOT:     hybrid.rotary
// CHECK-NOT:     hybrid.log_n_scale
// CHECK:         %[[O1:.+]], %{{.+}} = hybrid.attention {{.*}} scale 1.250000e-01 windows [0] sinks [0]
// CHECK-NEXT:    %[[J1:.+]] = hybrid.reshape %[[O1]]
// CHECK-NEXT:    %[[ALL:.+]] = hybrid.concat %[[J0]], %[[J1]] dim 1 : (tensor<?x32xf32>, tensor<?x64xf32>) -> tensor<?x96xf32>
// CHECK-NEXT:    hybrid.product %[[ALL]], %{{.+}} transpose_b : (tensor<?x96xf32>, tensor<64x96xf32>)
// CHECK:         hybrid.product %{{.+}}, %[[TABLE]] transpose_b
// CHECK-NEXT:    hybrid.cross_entropy

// A window keeps a ring: window - 1 + sinks + the largest chunk + the depth of
// a rollback. Each group has a cache of its own.
// CHECK-LABEL: func.func @extend(
// CHECK-SAME:    tensor<?x2x?x16xf32, #hybrid.slots<rows = [[RING]]>> {hybrid.path = "layers.0.mixer.k_cache"
// CHECK-SAME:    tensor<?x1x?x16xf32, #hybrid.slots<rows = [[FULL]]>> {hybrid.path = "layers.1.mixer.groups.0.k_cache"
// CHECK-SAME:    tensor<?x1x?x64xf32, #hybrid.slots<rows = [[FULL]]>> {hybrid.path = "layers.1.mixer.groups.1.k_cache"
// CHECK:         hybrid.attention_cached {{.*}} windows [16, 16, 16, 16] sinks [2, 2, 2, 2]
