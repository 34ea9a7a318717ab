// A row that sees one key gives q and k no gradient: what is left of it is
// rounding, and is measured by the gradients beside it.
// RUN: hybridc %s -o %t.hbx --cpu-levels=x86-64
// RUN: hybrid-run verify %t.hbx --tokens=20 --decode=1 --context=32 | FileCheck %s
// CHECK: backward 0 mixer.attention softmax_backward{{.*}} ok
// CHECK: within their bounds
hybrid.model @one_key vocab(16) width(16) layers(1) {
  hybrid.softmax heads(2) head_dim(8) position(nope) window(1)
}
