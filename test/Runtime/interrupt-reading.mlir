// Programs that only read a model and are interrupted end with 130, too.
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: hybridc %s -o tiny.hbx --cpu-levels=x86-64
// RUN: hybrid-run train tiny.hbx --text=%s --out=run --length=32 --batch=1 --steps=1 -q
// RUN: python3 %S/../Inputs/interrupt.py INT - hybrid-run generate tiny.hbx --weights=run --prompt=a --bytes=100000 --threads=1 \
// RUN:   | FileCheck %s --check-prefix=GENERATE
// GENERATE: exit code 130
// RUN: python3 %S/../Inputs/interrupt.py INT - stream-text tiny.hbx run/checkpoint.safetensors a 100000 \
// RUN:   | FileCheck %s --check-prefix=STREAM
// STREAM: exit code 130
// RUN: head -c 5000000 /dev/zero > zeros
// RUN: python3 %S/../Inputs/interrupt.py INT - hybrid-run eval tiny.hbx --weights=run --text=zeros --batch=1 --threads=1 \
// RUN:   | FileCheck %s --check-prefix=EVAL
// EVAL:      exit code 130
// EVAL-NEXT: error: evaluation was stopped
hybrid.model @tiny vocab(256) width(32) layers(1) tied trained(64) {
  hybrid.softmax heads(2) head_dim(16) position(nope)
}
