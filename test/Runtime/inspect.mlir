// What hybrid-run says about an artefact and about weights, how fast it is, what a
// run starts from, and what it refuses.
// RUN: rm -rf %t && mkdir -p %t/older
// RUN: hybridc %s -o %t/tiny.hbx --cpu-levels=x86-64-v3
// RUN: hybrid-run train %t/tiny.hbx --text=%s --out=%t/run --length=32 --batch=4 --steps=3 -q

// RUN: hybrid-run info %t/tiny.hbx --spec | FileCheck %s --check-prefix=INFO
// INFO: model          tiny
// INFO: compute type   f32
// INFO: code     x86-64-v3
// INFO: hybrid.model @tiny
// RUN: hybrid-run info %t/run/checkpoint.safetensors | FileCheck %s --check-prefix=WEIGHTS
// WEIGHTS: moment1:embed.weight
// RUN: hybrid-run info %t/run --spec | FileCheck %s --check-prefix=FOLDER
// FOLDER:      model          tiny
// FOLDER-NEXT: step           3 of 3
// FOLDER-NEXT: tokens         384
// FOLDER-NEXT: parameters     {{[0-9]+}} of F32
// FOLDER-NEXT: tensors        {{[0-9]+}}, and {{[0-9]+}} of the optimiser's moments
// FOLDER:      batch          4
// FOLDER-NOT:  moment1:
// FOLDER:      hybrid.model @tiny
// RUN: hybrid-run bench %t/tiny.hbx --train --batch=2 --length=16 --prefill=20 --decode=10 --repeats=1 | FileCheck %s --check-prefix=BENCH
// BENCH: prefill of 20
// BENCH: decode step at 10
// BENCH: training step, 2 x 16 {{.*}} tokens/s
// RUN: hybrid-run bench %t/tiny.hbx --train --length 8 16 --batch 2 1 --prefill 5 10 --decode=0 --repeats=1 | FileCheck %s --check-prefix=LENGTHS
// LENGTHS: prefill of 5
// LENGTHS-NEXT: prefill of 10
// LENGTHS-NEXT: training step, 2 x 8
// LENGTHS-NEXT: training step, 1 x 16
// RUN: not hybrid-run bench %t/tiny.hbx --train --length 8 16 --batch 1 2 3 2>&1 | FileCheck %s --check-prefix=BATCHES
// BATCHES: error: --batch: 3 numbers for 2 of --length; give one, or one for each
// RUN: hybrid-run bench %t/tiny.hbx --prefill=0 --decode 5 9 --sequences=2 --repeats=1 --profile | FileCheck %s --check-prefix=SIDE
// SIDE: decode step at 5, 2 sequences {{.*}} tokens/s   fastest {{.*}} ms
// SIDE: decode step at 9, 2 sequences
// SIDE: decode step at 5, 2 sequences, extend: {{.*}} ms a call, 20 calls
// SIDE: launches  head
// SIDE: decode step at 9, 2 sequences, extend: {{.*}} ms a call, 20 calls

// Starting from weights says what differs: here those of a spec that was trained
// on half the length.
// RUN: sed 's/trained(64)/trained(32)/g' %t/run/checkpoint.safetensors > %t/older/checkpoint.safetensors
// RUN: hybrid-run train %t/tiny.hbx --text=%s --out=%t/new --init-from=%t/older --length=32 --batch=4 \
// RUN:   --steps=2 2>&1 | FileCheck %s --check-prefix=INIT
// INIT: starts from {{.*}}/older; its spec and this one differ in:
// INIT: {{^}}  - hybrid.model @tiny {{.*}} trained(32)
// INIT: {{^}}  + hybrid.model @tiny {{.*}} trained(64)

// Bad input: exit code 1, one line, and the way out.
// RUN: not hybrid-run train %t/tiny.hbx --text=%s --out=%t/run --length=32 --batch=8 --steps=3 2>&1 | FileCheck %s --check-prefix=BATCH
// BATCH: error: {{.*}}checkpoint.safetensors: the run in this folder has batch 4, now 8 is asked for; give the same or another folder
// RUN: head -c 1000 %t/tiny.hbx > %t/cut.hbx
// RUN: not hybrid-run info %t/cut.hbx 2>&1 | FileCheck %s --check-prefix=CUT
// CUT: error: {{.*}}cut.hbx: artefact is cut or grown: it was written with {{[0-9]+}} bytes and has 1000
// RUN: not hybrid-run generate %t/tiny.hbx --weights=%t/none --prompt=a 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: cannot open {{.*}}/none: No such file or directory
// RUN: not hybrid-run generate %t/tiny.hbx --weights=%t/run --prompt=abc --bytes=9 --context=10 2>&1 | FileCheck %s --check-prefix=CONTEXT
// CONTEXT: error: prompt and output have 12 bytes, the context 10; give a larger --context or fewer --bytes
// A disk without room for the next checkpoint: the old one stays, whole.
// RUN: cp %t/run/checkpoint.safetensors %t/before
// RUN: sh -c 'ulimit -f 20; hybrid-run train %t/tiny.hbx --text=%s --out=%t/run --length=32 --batch=4 --steps=5 -q; test $? = 1' 2>&1 | FileCheck %s --check-prefix=FULL
// FULL: error: cannot write {{.*}}/run/checkpoint.safetensors: File too large
// RUN: cmp %t/before %t/run/checkpoint.safetensors
// RUN: test ! -e %t/run/.checkpoint.safetensors.partial
// RUN: sh -c 'hybrid-run info %t/tiny.hbx > /dev/full; test $? = 1' 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: sh -c 'hybrid-run generate %t/tiny.hbx --weights=%t/run --prompt=a > /dev/full; test $? = 1' 2>&1 | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: error: cannot write the standard output: No space left on device
// RUN: not hybrid-run train %t/tiny.hbx --out=%t/x 2>&1 | FileCheck %s --check-prefix=USAGE
// USAGE: error: --text is required
hybrid.model @tiny vocab(256) width(32) layers(2) tied trained(64) {
  hybrid.softmax heads(2) head_dim(16) position(nope)
}
