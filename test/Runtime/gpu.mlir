// Everything that the runtime does to run a compiled model on a GPU, on one that
// a fake driver plays with the processor's code (runtime/test/cuda). What is left
// to a real card is its arithmetic: test/gpu/run.sh. Whole artefacts are checked on
// the fake in test/artefacts.
// RUN: rm -rf %t && mkdir %t
// RUN: hybridc %s -o %t/cpu.hbx --cpu-levels=x86-64
// RUN: fake-gpu-artefact %t/cpu.hbx %t/gpu.hbx

// Training on either device gives the same bits here, since the code is the same.
// RUN: hybrid-run train %t/gpu.hbx --device=cpu --text=%s --out=%t/a --length=16 --batch=2 --steps=4 -q
// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda hybrid-run train %t/gpu.hbx --text=%s --out=%t/b --length=16 --batch=2 \
// RUN:   --steps=4 --trace=%t/trace.json 2>&1 | FileCheck %s --check-prefix=AUTO
// RUN: cmp %t/a/checkpoint.safetensors %t/b/checkpoint.safetensors
// AUTO: tiny: {{[0-9]+}} parameters, sm_90a, cuda:0 (Fake GPU, compute capability 9.0)
// RUN: FileCheck %s --check-prefix=TRACE < %t/trace.json
// TRACE-DAG: "name":"backward"
// TRACE-DAG: "name":"layer 0 mixer.q_proj"
// TRACE-DAG: "name":"process_name"

// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda hybrid-run generate %t/gpu.hbx --weights=%t/b --prompt=RUN --bytes=9 > %t/gpu.txt
// RUN: hybrid-run generate %t/gpu.hbx --device=cpu --weights=%t/a --prompt=RUN --bytes=9 > %t/cpu.txt
// RUN: cmp %t/cpu.txt %t/gpu.txt

// What is missing is said in a line, before any work; the exit code is 1.
// RUN: env HYBRID_CUDA_DRIVER=/nowhere/libcuda.so.1 not hybrid-run bench %t/gpu.hbx --device=cuda:0 2>&1 | FileCheck %s --check-prefix=DRIVER
// DRIVER: error: no NVIDIA driver: /nowhere/libcuda.so.1
// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda HYBRID_FAKE_CUDA=devices=0 not hybrid-run bench %t/gpu.hbx --device=cuda:0 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: the NVIDIA driver sees no GPU; use --device=cpu
// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda HYBRID_FAKE_CUDA=version=11040 not hybrid-run bench %t/gpu.hbx --device=cuda:0 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: error: the NVIDIA driver supports CUDA 11.4, 12.0 is needed
// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda HYBRID_FAKE_CUDA=memory=300000 not hybrid-run bench %t/gpu.hbx --train 2>&1 | FileCheck %s --check-prefix=MEMORY
// MEMORY: error: {{.*}}cuda:0: {{[0-9]+}} more bytes are needed, {{[0-9]+}} of its 300000 are free
// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda not hybrid-run bench %t/cpu.hbx --device=cuda:0 2>&1 | FileCheck %s --check-prefix=CODE
// CODE: error: {{.*}}artefact holds no GPU code, cuda:0 (Fake GPU) has compute capability 9.0; compile the spec with --target=cuda:sm_90a
// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda HYBRID_FAKE_CUDA=lose_device=30 not hybrid-run bench %t/gpu.hbx 2>&1 | FileCheck %s --check-prefix=LOST
// LOST: error: cuda:0: cannot finish extend: CUDA_ERROR_ILLEGAL_ADDRESS
hybrid.model @tiny vocab(256) width(32) layers(1) trained(16) {
  hybrid.softmax heads(2) head_dim(16) position(rope)
  hybrid.mlp swiglu(32)
}
