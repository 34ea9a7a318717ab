// A model in bf16: what layers hand on and what products read is bf16, row-wise
// operations, gates and logits are f32, and casts stand between.
// RUN: hybrid-opt %s -hybrid-expand-stack -hybrid-build-graph | FileCheck %s

hybrid.model @m vocab(256) width(64) layers(2) dtype(bf16) {
  hybrid.mix ratio(1 : 1) {
    hybrid.gdn heads(2) head_dim(32)
    hybrid.softmax heads(2) head_dim(32) position(rope, base = 10000)
  }
  hybrid.mlp swiglu(96)
}

// CHECK: hybrid.meta = {dtype = bf16,
// States of recurrences are f32, caches and rows of convolutions are not.
// CHECK-DAG: {kind = "conv", path = "layers.0.mixer.q_conv_state", type = tensor<?x3x64xbf16, #hybrid.slots>}
// CHECK-DAG: {kind = "recurrent", path = "layers.0.mixer.state", type = tensor<?x2x32x32xf32, #hybrid.slots>}
// CHECK-DAG: {kind = "kv", path = "layers.1.mixer.k_cache", type = tensor<?x2x?x32xbf16, {{.*}}>}

// CHECK-LABEL: func.func @loss(
// CHECK-SAME:    %[[TABLE:[a-z0-9]+]]: tensor<256x64xf32> {{.*}}hybrid.path = "embed.weight"
// CHECK:         %[[COPY:.+]] = hybrid.cast %[[TABLE]] : tensor<256x64xf32> to tensor<256x64xbf16>
// CHECK:         %[[X:.+]] = hybrid.embed %{{.+}}, %[[COPY]] : {{.*}} -> tensor<?x64xbf16>

// A norm: up, both operations in f32, down for the projections. Its gain is read
// as it is.
// CHECK:         %[[WIDE:.+]] = hybrid.cast %[[X]] : tensor<?x64xbf16> to tensor<?x64xf32>
// CHECK-NEXT:    %[[UNIT:.+]] = hybrid.normalize rms %[[WIDE]]
// CHECK-NEXT:    %[[NORM:.+]] = hybrid.mul %[[UNIT]], %{{.+}} : tensor<?x64xf32>, tensor<64xf32>
// CHECK-NEXT:    %[[READ:.+]] = hybrid.cast %[[NORM]] : tensor<?x64xf32> to tensor<?x64xbf16>
// CHECK:         hybrid.product %[[READ]], %{{.+}} transpose_b : (tensor<?x64xbf16>, tensor<64x64xbf16>) -> tensor<?x64xbf16>
// CHECK:         hybrid.short_conv %{{.+}} : (tensor<?x64xbf16>, tensor<64x4xf32>, !hybrid.segments) -> tensor<?x64xbf16>

// Gates and write strengths are sums that are never rounded.
// CHECK:         hybrid.product %[[READ]], %{{.+}} transpose_b : (tensor<?x64xbf16>, tensor<2x64xbf16>) -> tensor<?x2xf32>
// CHECK:         hybrid.softplus
// CHECK:         hybrid.product %[[READ]], %{{.+}} transpose_b : (tensor<?x64xbf16>, tensor<2x64xbf16>) -> tensor<?x2xf32>
// CHECK:         hybrid.recurrence delta {{.*}} decay({{.*}}) beta({{.*}}) {{.*}} -> tensor<?x2x32xbf16>

// The stream is rounded once per branch.
// CHECK:         %[[A:.+]] = hybrid.cast %[[X]] : tensor<?x64xbf16> to tensor<?x64xf32>
// CHECK-NEXT:    %[[B:.+]] = hybrid.cast %{{.+}} : tensor<?x64xbf16> to tensor<?x64xf32>
// CHECK-NEXT:    %[[SUM:.+]] = hybrid.add %[[A]], %[[B]]
// CHECK-NEXT:    hybrid.cast %[[SUM]] : tensor<?x64xf32> to tensor<?x64xbf16>

// CHECK:         hybrid.rotary %{{.+}} : tensor<?x2x32xf32>
// CHECK:         hybrid.attention {{.*}} -> (tensor<?x2x32xbf16>, tensor<?x2xf32>)
// CHECK:         %[[LOGITS:.+]] = hybrid.product %{{.+}} : (tensor<?x64xbf16>, tensor<256x64xbf16>) -> tensor<?x256xf32>
// CHECK:         hybrid.cross_entropy %[[LOGITS]]
