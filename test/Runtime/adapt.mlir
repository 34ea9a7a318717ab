// Dynamic evaluation: a model that knows one text learns another while it is
// scored. The weights of the file stay as they are.
// RUN: rm -rf %t && mkdir %t
// RUN: sh -c "yes 'In the beginning' | head -n 40 > %t/words; yes 0123456789 | head -n 90 > %t/numbers"
// RUN: hybridc %s -o %t/tiny.hbx --cpu-levels=x86-64-v3
// RUN: hybrid-run train %t/tiny.hbx --text=%t/words --out=%t/run --length=16 --batch=4 --lr=0.01 --steps=20 -q
// RUN: cp %t/run/checkpoint.safetensors %t/before
// RUN: hybrid-run eval %t/tiny.hbx --weights=%t/run --text=%t/numbers --batch=1 -q > %t/plain
// RUN: hybrid-run eval %t/tiny.hbx --weights=%t/run --text=%t/numbers --batch=1 --adapt=0.01 -q > %t/adapted
// RUN: cat %t/plain %t/adapted | FileCheck %s
// RUN: cmp %t/run/checkpoint.safetensors %t/before
// CHECK: bits per byte {{[6-9]|1[0-9]}}.
// CHECK: tokens        989
// CHECK: bits per byte {{[0-3]}}.
// CHECK: tokens        989

// A step of rate 0 is none; samples in no order are refused.
// RUN: hybrid-run eval %t/tiny.hbx --weights=%t/run --text=%t/numbers --batch=1 --adapt=0 -q | diff - %t/plain
// RUN: %python %S/Inputs/samples.py %t/samples.safetensors
// RUN: sh -c 'hybrid-run eval %t/tiny.hbx --weights=%t/run --text=%t/samples.safetensors --adapt=0.01; test $? = 2' 2>&1 | FileCheck %s --check-prefix=SAMPLES
// SAMPLES: error: --adapt: samples of a .safetensors file do not follow each other; give a text, or no --adapt
hybrid.model @tiny vocab(256) width(32) layers(1) tied trained(16) {
  hybrid.softmax heads(2) head_dim(16) position(nope)
}
