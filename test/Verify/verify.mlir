// Compiled code beside the oracle, a row per operation and call. Kernels that
// are wrong are in test/unit/Verify.
// RUN: rm -rf %t && mkdir %t
// RUN: hybridc %s -o %t/m.hbx --cpu-levels=x86-64
// RUN: hybrid-run verify %t/m.hbx --tokens=20 --decode=1 --context=32 | FileCheck %s

// CHECK:      m, x86-64: compiled code against the oracle
// CHECK:      call layer op kernel error bound
// CHECK-NEXT: loss - embed embed 0.0e+00 1.0e-05 ok
// CHECK:      loss 0 mixer.attention softmax_forward {{.*}} ok
// CHECK:      loss - all: loss {{.*}} ok
// CHECK:      backward 0 mixer.attention softmax_backward{{.*}} ok
// CHECK:      backward - all: gradient of layers.0.mixer.q_proj.weight {{.*}} ok
// CHECK:      prefill 0 mixer.attention softmax_cached {{.*}} ok
// CHECK:      prefill - all: logits {{.*}} ok
// CHECK:      decode 0 mixer.attention {{.*}} ok
// CHECK:      all {{[0-9]+}} rows are within their bounds

// RUN: hybrid-run verify %t/m.hbx --tokens=3 --decode=0 --context=4 --json | FileCheck %s --check-prefix=JSON
// JSON:      "code": "x86-64",
// JSON-NEXT: "model": "m",
// JSON-NEXT: "ok": true,
// JSON-NEXT: "rows": [
// JSON:      "bound": 1{{.*}}e-05,
// JSON:      "call": "loss",
// JSON:      "kernel": "embed",
// JSON:      "layer": -1,
// JSON:      "op": "embed"

// Weights of a run; those of another model are refused.
// RUN: hybrid-run train %t/m.hbx --text=%s --out=%t/run --length=8 --batch=1 --steps=1 -q
// RUN: hybrid-run verify %t/m.hbx --weights=%t/run --tokens=3 --decode=0 --context=4 | FileCheck %s --check-prefix=TRAINED
// TRAINED: within their bounds
// RUN: not hybridc verify %t/m.hbx --weights=%t/m.hbx 2>&1 | FileCheck %s --check-prefix=WEIGHTS
// WEIGHTS: hybridc: error: {{.*}}m.hbx

// RUN: hybridc %S/Inputs/function.mlir -o %t/function.hbx --cpu-levels=x86-64
// RUN: not hybrid-run verify %t/function.hbx 2>&1 | FileCheck %s --check-prefix=FUNCTION
// FUNCTION: hybridc: error: the artefact has none of the entries loss, backward, extend and extend_all; verify an artefact that was compiled from a model

// RUN: not hybrid-run verify %s 2>&1 | FileCheck %s --check-prefix=ARTEFACT
// ARTEFACT: hybridc: error: {{.*}}verify.mlir

// An artefact whose launches are not those that its spec gives here: this one has
// the processor's kernels in a GPU's plan.
// RUN: fake-gpu-artefact %t/m.hbx %t/gpu.hbx
// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda not hybrid-run verify %t/gpu.hbx --tokens=20 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: hybridc: error: launch 2 of entry 'loss' runs kernel 'product_{{[0-9a-f]+}}', which this hybridc does not plan there; use the hybridc that made the artefact

// Without a compiler.
// RUN: not hybrid-run verify %t/m.hbx --hybridc=%t/none 2>&1 | FileCheck %s --check-prefix=GIVEN
// GIVEN: error: cannot run the compiler '{{.*}}none': No such file or directory
// RUN: sh -c 'cp $(command -v hybrid-run) %t; PATH=/nowhere; %t/hybrid-run verify %t/m.hbx; test $? = 1' 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: verify needs the compiler, and 'hybridc' is neither in the folder of this program nor on PATH; give --hybridc=PATH
// RUN: sh -c 'hybridc verify %t/m.hbx --tokens=0; test $? = 2' 2>&1 | FileCheck %s --check-prefix=USAGE
// USAGE: see hybridc verify --help

hybrid.model @m vocab(256) width(8) layers(1) tied {
  hybrid.softmax heads(1) head_dim(8) position(nope)
}
