// Matrix products by a library, on a GPU that a fake driver plays; the library is in
// the same file. That the numbers agree is tested on whole artefacts
// (test/artefacts); here is what a user sees.
// RUN: rm -rf %t && mkdir %t
// RUN: hybridc %s -o %t/cpu.hbx --cpu-levels=x86-64
// RUN: fake-gpu-artefact %t/cpu.hbx %t/gpu.hbx

// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda HYBRID_CUBLASLT=%fake_cuda hybrid-run train %t/gpu.hbx --products=cublaslt \
// RUN:   --text=%s --out=%t/a --length=16 --batch=2 --steps=3 -q --trace=%t/trace.json 2>&1 | FileCheck %s --check-prefix=TAKEN
// TAKEN: products: cuBLASLt 13.0.2
// RUN: FileCheck %s --check-prefix=TRACE < %t/trace.json
// TRACE: "name":"layer 0 mixer.q_proj",{{.*}}"kernel":"cuBLASLt 13.0.2 product of 32 x 32 x 32 in f32"

// Of themselves products in f32 stay compiled, with the same bits as ever, and a line
// says why.
// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda HYBRID_CUBLASLT=/nowhere/libcublasLt.so.13 hybrid-run train %t/gpu.hbx --products=auto \
// RUN:   --text=%s --out=%t/b --length=16 --batch=2 --steps=3 -q 2>&1 | FileCheck %s --check-prefix=WITHOUT
// WITHOUT: products: compiled, they are f32 or of kernels for this GPU
// RUN: hybrid-run train %t/gpu.hbx --device=cpu --text=%s --out=%t/c --length=16 --batch=2 --steps=3 -q
// RUN: cmp %t/b/checkpoint.safetensors %t/c/checkpoint.safetensors
hybrid.model @tiny vocab(256) width(32) layers(1) trained(16) {
  hybrid.softmax heads(2) head_dim(16) position(rope)
  hybrid.mlp swiglu(32)
}
