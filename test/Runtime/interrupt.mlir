// A program that is interrupted ends with 128 and the number of the signal, as one
// that the signal killed: 130 after control-C. What was begun is saved or not there.
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: hybridc %s -o tiny.hbx --cpu-levels=x86-64
// RUN: python3 %S/../Inputs/interrupt.py INT run/log.jsonl hybrid-run train tiny.hbx --text=%s --out=run \
// RUN:   --length=32 --batch=4 --steps=1000000 --threads=1 -q | FileCheck %s --check-prefix=TRAIN
// TRAIN:      exit code 130
// TRAIN-NEXT: error: interrupted after step {{[0-9]+}}, which is saved; the same command continues
// RUN: hybrid-run info run | grep -q 'of 1000000$'
// RUN: python3 %S/../Inputs/interrupt.py TERM term/log.jsonl hybrid-run train tiny.hbx --text=%s --out=term \
// RUN:   --length=32 --batch=4 --steps=1000000 --threads=1 -q | FileCheck %s --check-prefix=TERM
// TERM: exit code 143
hybrid.model @tiny vocab(256) width(32) layers(1) tied trained(64) {
  hybrid.softmax heads(2) head_dim(16) position(nope)
}
