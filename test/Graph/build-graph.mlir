// A stack becomes one function per entry point, with its tables on the module.
// RUN: hybrid-opt %s -hybrid-build-graph | FileCheck %s
// RUN: hybrid-opt %s -hybrid-build-graph -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s --check-prefix=LOC

hybrid.stack @m vocab(256) width(64) trained(0) epsilon(1.0e-5) init_std(0.02) {
  hybrid.layer 0 {
    hybrid.softmax heads(2) kv_heads(2) head_dim(32) position(nope)
    hybrid.mlp swiglu(128)
  }
}

// CHECK:       module attributes {
// CHECK-SAME:    hybrid.meta = {name = "m", trained_length = 0 : i64, vocab = 256 : i64}
// CHECK-SAME:    hybrid.params = [{decay = true, init = "normal(0.02)", path = "embed.weight", shape = array<i64: 256, 64>},
// CHECK-SAME:    {decay = false, init = "ones", path = "layers.0.mixer_norm.weight", shape = array<i64: 64>}
// CHECK-SAME:    {decay = true, init = "normal(0.0141421356{{[0-9]+}})", path = "layers.0.mixer.o_proj.weight", shape = array<i64: 64, 64>}
// CHECK-SAME:    path = "layers.0.mlp_norm.weight"
// CHECK-SAME:    path = "layers.0.mlp.gate_proj.weight", shape = array<i64: 128, 64>
// CHECK-SAME:    path = "layers.0.mlp.up_proj.weight", shape = array<i64: 128, 64>
// CHECK-SAME:    path = "layers.0.mlp.down_proj.weight", shape = array<i64: 64, 128>
// CHECK-SAME:    path = "norm.weight"
// CHECK-SAME:    path = "head.weight", shape = array<i64: 256, 64>
// CHECK-SAME:    hybrid.states = [{kind = "kv", path = "layers.0.mixer.k_cache", type = tensor<?x2x?x32xf32, #hybrid.slots<rows = [[CONTEXT:#[a-z0-9]+]]>>},
// CHECK-SAME:    path = "layers.0.mixer.v_cache"

// CHECK-LABEL: func.func @loss(
// CHECK-SAME:    %[[TABLE:[a-z0-9]+]]: tensor<256x64xf32> {hybrid.path = "embed.weight", hybrid.role = "param"}
// CHECK-SAME:    %[[MIXER_NORM:[a-z0-9]+]]: tensor<64xf32> {hybrid.path = "layers.0.mixer_norm.weight"
// CHECK-SAME:    %[[WQ:[a-z0-9]+]]: tensor<64x64xf32> {hybrid.path = "layers.0.mixer.q_proj.weight"
// CHECK-SAME:    %[[WO:[a-z0-9]+]]: tensor<64x64xf32> {hybrid.path = "layers.0.mixer.o_proj.weight"
// CHECK-SAME:    %[[WD:[a-z0-9]+]]: tensor<64x128xf32> {hybrid.path = "layers.0.mlp.down_proj.weight"
// CHECK-SAME:    %[[HEAD:[a-z0-9]+]]: tensor<256x64xf32> {hybrid.path = "head.weight"
// CHECK-SAME:    %[[IDS:[a-z0-9]+]]: tensor<?xi32> {hybrid.role = "ids"}
// CHECK-SAME:    %[[LABELS:[a-z0-9]+]]: tensor<?xi32> {hybrid.role = "labels"}
// CHECK-SAME:    %[[WEIGHTS:[a-z0-9]+]]: tensor<?xf32> {hybrid.role = "weights"}
// CHECK-SAME:    %[[SEGMENTS:[a-z0-9]+]]: !hybrid.segments {hybrid.role = "segments"})
// CHECK-SAME:    -> (tensor<?xf32> {hybrid.role = "loss"}) attributes {hybrid.entry = "loss"}
// CHECK:         %[[X:.+]] = hybrid.embed %[[IDS]], %[[TABLE]]
// CHECK-NEXT:    %[[UNIT:.+]] = hybrid.normalize rms %[[X]] epsilon 1.000000e-05
// CHECK-NEXT:    %[[NORMED:.+]] = hybrid.mul %[[UNIT]], %[[MIXER_NORM]]
// CHECK-NEXT:    %[[Q:.+]] = hybrid.product %[[NORMED]], %[[WQ]] transpose_b
// CHECK-NEXT:    %[[QH:.+]] = hybrid.reshape %[[Q]] : tensor<?x64xf32> -> tensor<?x2x32xf32>
// CHECK:         %[[O:.+]], %{{.+}} = hybrid.attention %[[QH]], %{{.+}}, %{{.+}}, %[[SEGMENTS]] scale 0.17677669529663687 windows [0, 0] sinks [0, 0]
// CHECK-NEXT:    %[[OJ:.+]] = hybrid.reshape %[[O]] : tensor<?x2x32xf32> -> tensor<?x64xf32>
// CHECK-NEXT:    %[[Y:.+]] = hybrid.product %[[OJ]], %[[WO]] transpose_b
// CHECK-NEXT:    %[[X1:.+]] = hybrid.add %[[X]], %[[Y]]
// CHECK:         %[[GATE:.+]] = hybrid.silu
// CHECK-NEXT:    %[[INNER:.+]] = hybrid.mul %[[GATE]],
// CHECK-NEXT:    %[[DOWN:.+]] = hybrid.product %[[INNER]], %[[WD]] transpose_b
// CHECK-NEXT:    hybrid.add %[[X1]], %[[DOWN]]
// CHECK:         %[[LOGITS:.+]] = hybrid.product %{{.+}}, %[[HEAD]] transpose_b
// CHECK-NEXT:    %[[LOSS:.+]] = hybrid.cross_entropy %[[LOGITS]], %[[LABELS]], %[[WEIGHTS]]
// CHECK-NEXT:    return %[[LOSS]]

// The head runs on the last rows alone.
// CHECK-LABEL: func.func @extend(
// CHECK-SAME:    %[[KC:[a-z0-9]+]]: tensor<?x2x?x32xf32, #hybrid.slots<rows = [[CONTEXT]]>> {hybrid.path = "layers.0.mixer.k_cache", hybrid.role = "state"}
// CHECK-SAME:    %[[VC:[a-z0-9]+]]: tensor<?x2x?x32xf32, #hybrid.slots<rows = [[CONTEXT]]>> {hybrid.path = "layers.0.mixer.v_cache", hybrid.role = "state"}
// CHECK-SAME:    -> (tensor<?x256xf32, #hybrid.per_segment> {hybrid.role = "logits"},
// CHECK-SAME:        {hybrid.path = "layers.0.mixer.k_cache", hybrid.role = "state"},
// CHECK-SAME:    attributes {hybrid.entry = "extend"}
// CHECK:         %{{.+}}, %[[KC1:.+]], %[[VC1:.+]] = hybrid.attention_cached %{{.+}}, %{{.+}}, %{{.+}}, %[[KC]], %[[VC]],
// CHECK:         %[[LAST:.+]] = hybrid.last_rows
// CHECK-NEXT:    hybrid.normalize rms %[[LAST]]
// CHECK:         return %{{.+}}, %[[KC1]], %[[VC1]]

// CHECK-LABEL: func.func @extend_all(
// CHECK-SAME:    -> (tensor<?x256xf32> {hybrid.role = "logits"},
// CHECK-NOT:     hybrid.last_rows

// Operations are named after their place in the model.
// LOC: hybrid.product {{.*}} loc("layers.0.mixer.q_proj"("{{.*}}build-graph.mlir":7:5))
// LOC: hybrid.product {{.*}} loc("layers.0.mlp.down_proj"("{{.*}}build-graph.mlir":8:5))
// LOC: hybrid.product {{.*}} loc("head"("{{.*}}build-graph.mlir":5:1))
