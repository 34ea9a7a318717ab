// The program hybrid-run and the example application on a tiny model of bytes,
// with this file as the text.
// RUN: rm -rf %t && mkdir %t
// RUN: hybridc %s -o %t/tiny.hbx --cpu-levels=x86-64-v3

// Training starts, is continued when asked for more, and reports what it did.
// RUN: hybrid-run train %t/tiny.hbx --text=%s --valid=%s --out=%t/run --length=32 --batch=4 \
// RUN:   --steps=20 --schedule=constant --warmup=2 --lr=0.01 2>&1 | FileCheck %s --check-prefix=TRAIN
// TRAIN: tiny: {{[0-9]+}} parameters, x86-64-v3
// TRAIN-NEXT: 20 steps of 4 x 32 tokens
// TRAIN: 100%  step 20/20  loss {{.*}} bits/byte {{.*}} tokens/s
// TRAIN: validation: {{[0-9.]+}} bits per byte, loss {{[0-9.]+}} over {{[0-9]+}} tokens
// TRAIN: checkpoint {{.*}}/run/checkpoint.safetensors, log {{.*}}/run/log.jsonl, loss curve {{.*}}/run/loss.svg
// RUN: hybrid-run train %t/tiny.hbx --text=%s --out=%t/run --length=32 --batch=4 \
// RUN:   --steps=30 --schedule=constant --warmup=2 --lr=0.01 2>&1 | FileCheck %s --check-prefix=CONTINUE
// CONTINUE: continues {{.*}}/run at step 20
// CONTINUE: 100%  step 30/30

// The same in one go gives the same bits.
// RUN: hybrid-run train %t/tiny.hbx --text=%s --out=%t/whole --length=32 --batch=4 \
// RUN:   --steps=30 --schedule=constant --warmup=2 --lr=0.01 --threads=1 -q
// RUN: cmp %t/run/checkpoint.safetensors %t/whole/checkpoint.safetensors

// RUN: FileCheck %s --check-prefix=LOG < %t/run/log.jsonl
// LOG: {"step":1,"bytes":128,"loss":{{[0-9.]+}},"bits_per_byte":{{.*}},"learning_rate":0.005,"gradient_norm":{{.*}},"skipped":false,"tokens_per_second":{{.*}}}
// LOG: {"step":20,"bytes":2560,"valid_bits_per_byte":{{[0-9.]+}}}
// LOG: {"step":30,
// RUN: FileCheck %s --check-prefix=CURVE < %t/run/loss.svg
// CURVE: <svg xmlns="http://www.w3.org/2000/svg"
// CURVE: </svg>

// RUN: hybrid-run eval %t/tiny.hbx --weights=%t/run --text=%s --length=32 --by-position -q | FileCheck %s --check-prefix=EVAL
// EVAL: bits per byte {{[0-9.]+}}
// EVAL: position
// EVAL-NEXT: 0 - 0
// RUN: hybrid-run eval %t/tiny.hbx --weights=%t/run --text=%s --json -q | FileCheck %s --check-prefix=JSON
// JSON: {"loss":{{[0-9.]+}},"bits_per_byte":{{[0-9.]+}},"tokens":{{[0-9]+}}}

// The same seed writes the same text; so does the application.
// RUN: hybrid-run generate %t/tiny.hbx --weights=%t/run --prompt=RUN --bytes=20 --seed=0 > %t/a
// RUN: hybrid-run generate %t/tiny.hbx --weights=%t/run --prompt=RUN --bytes=20 --seed=0 --threads=1 > %t/b
// RUN: stream-text %t/tiny.hbx %t/run/checkpoint.safetensors RUN 20 > %t/c
// RUN: cmp %t/a %t/b && cmp %t/a %t/c
// RUN: grep -a -q '^RUN' %t/a

// RUN: hybrid-run info %t/tiny.hbx --spec | FileCheck %s --check-prefix=INFO
// INFO: model          tiny
// INFO: code     x86-64-v3
// INFO: hybrid.model @tiny
// RUN: hybrid-run info %t/run/checkpoint.safetensors | FileCheck %s --check-prefix=WEIGHTS
// WEIGHTS: moment1:embed.weight
// RUN: hybrid-run bench %t/tiny.hbx --train --batch=2 --length=16 --prefill=20 --decode=10 --repeats=1 | FileCheck %s --check-prefix=BENCH
// BENCH: training step, 2 x 16 {{.*}} tokens/s
// BENCH: prefill of 20
// BENCH: decode step at 10

// Starting from weights says what differs.
// RUN: sed 's/trained(64)/trained(128)/' %s > %t/longer.mlir
// RUN: hybridc %t/longer.mlir -o %t/longer.hbx --cpu-levels=x86-64-v3
// RUN: hybrid-run train %t/longer.hbx --text=%s --out=%t/longer --init-from=%t/run --length=32 --batch=4 \
// RUN:   --steps=2 2>&1 | FileCheck %s --check-prefix=INIT
// INIT: starts from {{.*}}/run; its spec and this one differ in:
// INIT: - hybrid.model @tiny {{.*}} trained(64)
// INIT: + hybrid.model @tiny {{.*}} trained(128)

// Bad input: exit code 1, one line, and the way out.
// RUN: not hybrid-run train %t/tiny.hbx --text=%s --out=%t/run --length=32 --batch=8 --steps=30 2>&1 | FileCheck %s --check-prefix=BATCH
// BATCH: error: {{.*}}checkpoint.safetensors: the run in this folder has batch 4, now 8 is asked for; give the same or another folder
// RUN: head -c 1000 %t/tiny.hbx > %t/cut.hbx
// RUN: not hybrid-run info %t/cut.hbx 2>&1 | FileCheck %s --check-prefix=CUT
// CUT: error: {{.*}}cut.hbx: artefact is cut or grown: it was written with {{[0-9]+}} bytes and has 1000
// RUN: not hybrid-run generate %t/tiny.hbx --weights=%t/none --prompt=a 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: cannot open {{.*}}/none: No such file or directory
// RUN: not hybrid-run generate %t/tiny.hbx --weights=%t/run --prompt=abc --bytes=9 --context=10 2>&1 | FileCheck %s --check-prefix=CONTEXT
// CONTEXT: error: prompt and output have 12 bytes, the context 10; give a larger --context or fewer --bytes
// RUN: not hybrid-run train %t/tiny.hbx --out=%t/x 2>&1 | FileCheck %s --check-prefix=USAGE
// USAGE: error: --text is required
hybrid.model @tiny vocab(256) width(32) layers(2) tied trained(64) {
  hybrid.mix ratio(1 : 1) {
    hybrid.gla heads(1) head_dim(16)
    hybrid.softmax heads(2) head_dim(16) position(nope)
  }
}
