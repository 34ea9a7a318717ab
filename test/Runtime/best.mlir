// Training keeps the weights of the best validation on the way, also over an
// interruption; a run that ends worse says so.
// RUN: rm -rf %t && mkdir %t
// RUN: sh -c "yes 'In the beginning' | head -n 40 > %t/words; yes 0123456789 | head -n 60 > %t/numbers"
// RUN: hybridc %s -o %t/tiny.hbx --cpu-levels=x86-64-v3
// RUN: hybrid-run train %t/tiny.hbx --text=%t/words --valid=%t/words --out=%t/run --length=16 --batch=4 --lr=0.01 \
// RUN:   --steps=20 -q | FileCheck %s --check-prefix=GOOD --implicit-check-not=best
// GOOD: validation: {{[0-9.]+}} bits per byte
// RUN: hybrid-run info %t/run/best.safetensors | FileCheck %s --check-prefix=INFO
// INFO: step: 20
// INFO-NEXT: validation bits per byte: {{[0-9.]+}}

// From there another text is learnt and the first forgotten.
// RUN: hybrid-run train %t/tiny.hbx --text=%t/numbers --valid=%t/words --out=%t/other --length=16 --batch=4 \
// RUN:   --init-from=%t/run --schedule=constant --warmup=0 --lr=0.01 --steps=20 -q | FileCheck %s --check-prefix=WORSE
// RUN: cp %t/other/best.safetensors %t/kept
// RUN: hybrid-run train %t/tiny.hbx --text=%t/numbers --valid=%t/words --out=%t/other --length=16 --batch=4 \
// RUN:   --schedule=constant --warmup=0 --lr=0.01 --steps=30 -q | FileCheck %s --check-prefix=WORSE
// RUN: cmp %t/other/best.safetensors %t/kept
// WORSE: best on the way: {{[0-9.]+}} bits per byte of a part, after step 2, kept as {{.*}}/other/best.safetensors
// RUN: hybrid-run eval %t/tiny.hbx --weights=%t/other/best.safetensors --text=%t/words -q | FileCheck %s --check-prefix=EVAL
// EVAL: bits per byte

// What was measured on other data is not compared: the first validation is the
// best again, also when it is worse.
// RUN: hybrid-run train %t/tiny.hbx --text=%t/numbers --valid=%t/words --out=%t/other --length=16 --batch=4 \
// RUN:   --schedule=constant --warmup=0 --lr=0.01 --steps=31 -q 2>&1 | FileCheck %s --check-prefix=SAME --implicit-check-not=note:
// SAME: best on the way: {{[0-9.]+}} bits per byte of a part, after step 2
// RUN: sh -c "head -c 200 %t/words > %t/fewer"
// RUN: hybrid-run train %t/tiny.hbx --text=%t/numbers --valid=%t/fewer --out=%t/other --length=16 --batch=4 \
// RUN:   --schedule=constant --warmup=0 --lr=0.01 --steps=32 -q 2>&1 | FileCheck %s --check-prefix=ANEW --implicit-check-not="best on"
// ANEW: note: the best so far, {{[0-9.]+}} bits per byte after step 2, was of other data than this --valid; it is measured anew
// RUN: hybrid-run info %t/other/best.safetensors | FileCheck %s --check-prefix=STEP
// STEP: step: 32

// What is no file of ours does not keep a run from going on; it is replaced.
// RUN: cp %t/words %t/run/best.safetensors
// RUN: hybrid-run train %t/tiny.hbx --text=%t/words --valid=%t/words --out=%t/run --length=16 --batch=4 --lr=0.01 \
// RUN:   --steps=30 -q | FileCheck %s --check-prefix=GOOD
// RUN: hybrid-run info %t/run/best.safetensors | FileCheck %s --check-prefix=AGAIN
// AGAIN: step: {{2[0-9]|30}}
// RUN: rm %t/numbers

// A validation that fails costs no steps.
// RUN: not hybrid-run train %t/tiny.hbx --text=%t/words --valid=%t/numbers --out=%t/lost --length=16 --batch=4 --steps=1 -q
// RUN: hybrid-run info %t/lost/checkpoint.safetensors | FileCheck %s --check-prefix=LOST
// LOST: {{^}}step: 1{{$}}
hybrid.model @tiny vocab(256) width(32) layers(1) tied trained(16) {
  hybrid.softmax heads(2) head_dim(16) position(nope)
}
