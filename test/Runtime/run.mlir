// The program hybrid-run and the example application on a tiny model of bytes,
// with this file as the text: train, continue, evaluate, write.
// RUN: rm -rf %t && mkdir %t
// RUN: hybridc %s -o %t/tiny.hbx --cpu-levels=x86-64-v3

// Training starts, is continued when asked for more, and reports what it did.
// RUN: hybrid-run train %t/tiny.hbx --text=%s --valid=%s --out=%t/run --length=32 --batch=4 \
// RUN:   --steps=20 --schedule=constant --warmup=2 --lr=0.01 > %t/shown 2>&1
// RUN: FileCheck %s --check-prefix=TRAIN < %t/shown
// TRAIN: tiny: {{[0-9]+}} parameters, x86-64-v3
// TRAIN-NEXT: 20 steps of 4 x 32 tokens
// TRAIN: 100%  step 20/20  loss {{.*}} bits/byte {{.*}} tokens/s
// TRAIN: validation: {{[0-9.]+}} bits per byte, loss {{[0-9.]+}} over {{[0-9]+}} tokens
// TRAIN: checkpoint {{.*}}/run/checkpoint.safetensors, log {{.*}}/run/log.jsonl, loss curve {{.*}}/run/loss.svg

// The loss that is shown is the one that the log has of the same step.
// RUN: sed -n 's/.*"step":20,.*"loss":\([0-9.]*\),.*/\1/p' %t/run/log.jsonl | xargs printf 'step 20/20  loss %%.4f  ' > %t/logged
// RUN: grep -F -f %t/logged %t/shown

// A finished run that is started again validates and changes nothing.
// RUN: cp %t/run/log.jsonl %t/log-before && cp %t/run/loss.svg %t/picture-before
// RUN: hybrid-run train %t/tiny.hbx --text=%s --valid=%s --out=%t/run --length=32 --batch=4 \
// RUN:   --steps=20 --schedule=constant --warmup=2 --lr=0.01 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: nothing left to train in {{.*}}/run at step 20; a larger --bytes or --steps would go on
// AGAIN: validation: {{[0-9.]+}} bits per byte
// RUN: cmp %t/run/log.jsonl %t/log-before && cmp %t/run/loss.svg %t/picture-before

// A warm-up that is not given is that of the run so far.
// RUN: hybrid-run train %t/tiny.hbx --text=%s --out=%t/run --length=32 --batch=4 \
// RUN:   --steps=30 --schedule=constant --lr=0.01 2>&1 | FileCheck %s --check-prefix=CONTINUE
// CONTINUE: continues {{.*}}/run at step 20
// CONTINUE: 100%  step 30/30

// The same in one go gives the same bits.
// RUN: hybrid-run train %t/tiny.hbx --text=%s --out=%t/whole --length=32 --batch=4 \
// RUN:   --steps=30 --schedule=constant --warmup=2 --lr=0.01 --threads=1 -q
// RUN: cmp %t/run/checkpoint.safetensors %t/whole/checkpoint.safetensors

// RUN: FileCheck %s --check-prefix=LOG < %t/run/log.jsonl
// LOG: {"step":1,"bytes":128,"loss":{{[0-9.]+}},"bits_per_byte":{{.*}},"learning_rate":0.005,"gradient_norm":{{.*}},"skipped":false,"tokens_per_second":{{.*}}}
// LOG: {"step":18,"bytes":2304,"valid_bits_per_byte":{{[0-9.]+}},"valid_tokens":{{[0-9]+}},"quick":true}
// LOG: {"step":20,"bytes":2560,"valid_bits_per_byte":{{[0-9.]+}},"valid_tokens":{{[0-9]+}},"quick":false}
// LOG: {"step":30,
// RUN: FileCheck %s --check-prefix=CURVE < %t/run/loss.svg
// CURVE: <svg xmlns="http://www.w3.org/2000/svg"
// CURVE: rings validation on a part, dots on all of it
// Nine on the way, one at the end.
// CURVE-COUNT-9: fill="none" stroke="#c0392b"
// CURVE-NEXT: fill="#c0392b" stroke="#c0392b"
// CURVE-NEXT: </svg>

// RUN: hybrid-run eval %t/tiny.hbx --weights=%t/run --text=%s --length=32 --by-position -q | FileCheck %s --check-prefix=EVAL
// EVAL: bits per byte {{[0-9.]+}}
// EVAL: position
// EVAL-NEXT: 0 - 0
// RUN: hybrid-run eval %t/tiny.hbx --weights=%t/run --text=%s --json -q | FileCheck %s --check-prefix=JSON
// JSON: {"loss":{{[0-9.]+}},"bits_per_byte":{{[0-9.]+}},"tokens":{{[0-9]+}}}

// A loss that is not a number is an error. Floats of ones are NaN.
// RUN: %python %S/Inputs/all_nan.py %t/run/checkpoint.safetensors %t/nan.safetensors
// RUN: sh -c 'for o in -q --json; do hybrid-run eval %t/tiny.hbx --weights=%t/nan.safetensors --text=%s $o; test $? = 1 || echo "exit code of $o"; done' > %t/nan-output 2>&1
// RUN: FileCheck %s --check-prefix=NAN --implicit-check-not='exit code' --implicit-check-not='bits per byte' < %t/nan-output
// NAN-COUNT-2: error: loss over {{[0-9]+}} tokens is {{-?}}nan, not a finite number; hybrid-run eval --check-finite names the weight or the kernel that it comes from

// The same seed writes the same text; so does the application.
// RUN: hybrid-run generate %t/tiny.hbx --weights=%t/run --prompt=RUN --bytes=20 --seed=0 > %t/a
// RUN: hybrid-run generate %t/tiny.hbx --weights=%t/run --prompt=RUN --bytes=20 --seed=0 --threads=1 > %t/b
// RUN: stream-text %t/tiny.hbx %t/run/checkpoint.safetensors RUN 20 > %t/c
// RUN: cmp %t/a %t/b && cmp %t/a %t/c
// RUN: sh -c 'for n in abc 0 -5 20x 1e3 99999999999999999999; do stream-text %t/tiny.hbx %t/run/checkpoint.safetensors RUN $n; test $? = 2 || echo "exit code of $n"; done' 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT:     error: 'abc' is not a number of bytes
// COUNT:     usage: stream-text ARTEFACT WEIGHTS PROMPT [BYTES]
// COUNT:     error: '99999999999999999999' is not a number of bytes
// COUNT-NOT: exit code
// RUN: grep -a -q '^RUN' %t/a
hybrid.model @tiny vocab(256) width(32) layers(2) tied trained(64) {
  hybrid.softmax heads(2) head_dim(16) position(nope)
}
