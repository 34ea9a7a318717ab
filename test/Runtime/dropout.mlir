// Training with dropout: every kernel agrees with the oracle under the keys of the
// call, and no thread, no interruption and no device changes a mask.
// RUN: rm -rf %t && mkdir %t
// RUN: hybridc %s -o %t/cpu.hbx --cpu-levels=x86-64
// RUN: hybridc verify %t/cpu.hbx --tokens=24 | FileCheck %s --check-prefix=VERIFY --implicit-check-not=FAILED
// VERIFY: all: gradient of embed.weight
// VERIFY: rows are within their bounds

// In one go, by one thread; and in two, cut after 3 steps.
// RUN: hybrid-run train %t/cpu.hbx --text=%s --out=%t/whole --length=16 --batch=4 --accumulate=2 --warmup=1 \
// RUN:   --schedule=constant --steps=6 --threads=1 -q
// RUN: hybrid-run train %t/cpu.hbx --text=%s --out=%t/cut --length=16 --batch=4 --accumulate=2 --warmup=1 \
// RUN:   --schedule=constant --steps=3 -q
// RUN: hybrid-run train %t/cpu.hbx --text=%s --out=%t/cut --length=16 --batch=4 --accumulate=2 --warmup=1 \
// RUN:   --schedule=constant --steps=6 -q
// RUN: cmp %t/whole/checkpoint.safetensors %t/cut/checkpoint.safetensors

// A launch sequence that a GPU replays reads new keys.
// RUN: fake-gpu-artefact %t/cpu.hbx %t/gpu.hbx
// RUN: env HYBRID_CUDA_DRIVER=%fake_cuda hybrid-run train %t/gpu.hbx --text=%s --out=%t/gpu --length=16 --batch=4 \
// RUN:   --accumulate=2 --warmup=1 --schedule=constant --steps=6 -q
// RUN: cmp %t/whole/checkpoint.safetensors %t/gpu/checkpoint.safetensors

// The same 16 bytes, with weights that stay: each of 5 steps leaves out others, and
// a validation leaves out nothing.
// RUN: printf 'In the beginning.' > %t/text
// RUN: hybrid-run train %t/cpu.hbx --text=%t/text --valid=%t/text --out=%t/still --length=16 --batch=1 --lr=0 --steps=5 -q
// RUN: grep -o '"loss":[0-9.]*' %t/still/log.jsonl | sort -u | count 5
// RUN: grep -o '"valid_bits_per_byte":[0-9.]*' %t/still/log.jsonl | sort -u | count 1
hybrid.model @tiny vocab(256) width(32) layers(1) tied trained(16) dropout(0.25) attributes {hybrid.recompute = "selective"} {
  hybrid.softmax heads(2) head_dim(16) position(nope)
  hybrid.mlp swiglu(32)
}
