// What is missing or fails when products are a library's is told in a line; the
// library is played by the fake driver's.
// RUN: rm -rf %t && mkdir %t
// RUN: hybridc %s -o %t/cpu.hbx --cpu-levels=x86-64
// RUN: fake-gpu-artefact %t/cpu.hbx %t/gpu.hbx

// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda HYBRID_CUBLASLT=/nowhere/libcublasLt.so.13 not hybrid-run bench %t/gpu.hbx \
// RUN:   --products=cublaslt 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: {{.*}}no cuBLASLt: /nowhere/libcublasLt.so.13: cannot open shared object file{{.*}}; install cuBLAS 12 or 13

// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda HYBRID_CUBLASLT=%fake_cuda HYBRID_FAKE_CUDA=fail_product=5 not hybrid-run bench %t/gpu.hbx \
// RUN:   --products=cublaslt --prefill=16 --decode=0 2>&1 | FileCheck %s --check-prefix=FAILED
// FAILED: error: cuda:0: cuBLASLt 13.0.2 cannot run {{.*}} of {{.*}} (cuBLASLt 13.0.2 product of {{.*}} in f32): CUBLAS_STATUS_EXECUTION_FAILED (13); with products=compiled it is not used
// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda HYBRID_CUBLASLT=%fake_cuda HYBRID_FAKE_CUDA=fail_choice=1 not hybrid-run bench %t/gpu.hbx \
// RUN:   --products=cublaslt --prefill=16 --decode=0 2>&1 | FileCheck %s --check-prefix=CHOICE
// CHOICE: error: cuda:0: cuBLASLt 13.0.2 has no algorithm for a product of {{.*}} in f32; use products=auto or compiled
// RUN: not hybrid-run bench %t/gpu.hbx --device=cpu --products=cublaslt 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: error: {{.*}}products=cublaslt, but the model runs on the processor: device=cpu
// RUN: not hybrid-run bench %t/gpu.hbx --products=mkl 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: --products: 'mkl' is not a way to compute products; give compiled, cublaslt or auto
hybrid.model @tiny vocab(256) width(32) layers(1) trained(16) {
  hybrid.softmax heads(2) head_dim(16) position(rope)
  hybrid.mlp swiglu(32)
}
