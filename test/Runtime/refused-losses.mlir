// Losses that are no numbers, windows that leave bytes out, and weights by the
// folder of their run.
// RUN: rm -rf %t && mkdir %t
// RUN: hybridc %s -o %t/tiny.hbx --cpu-levels=x86-64-v3
// RUN: hybrid-run train %t/tiny.hbx --text=%s --out=%t/run --length=16 --batch=2 --steps=1 -q

// A run whose validation gives no number has not gone well; what it has is kept.
// RUN: %python %S/Inputs/all_nan.py %t/run/checkpoint.safetensors %t/nan.safetensors
// RUN: sh -c 'hybrid-run train %t/tiny.hbx --init-from=%t/nan.safetensors --text=%s --valid=%s --out=%t/nan --length=16 --batch=2 --steps=1; test $? = 1' > %t/nan-output 2>&1
// RUN: FileCheck %s --check-prefix=NAN < %t/nan-output
// RUN: test -e %t/nan/checkpoint.safetensors
// NAN: warning: step 1 skipped: its gradient is not finite
// NAN: validation: {{-?}}nan bits per byte
// NAN: error: loss over {{[0-9]+}} tokens is {{-?}}nan, not a finite number; hybrid-run eval --check-finite names the weight or the kernel that it comes from

// A stride above the length that was given, and above the trained one.
// RUN: sh -c 'for o in --length=8 --length=0; do hybrid-run eval %t/tiny.hbx --weights=%t/run --text=%s $o --stride=33; test $? = 2 || echo "exit code of $o"; done' > %t/stride 2>&1
// RUN: FileCheck %s --check-prefix=STRIDE --implicit-check-not='exit code' < %t/stride
// STRIDE: error: --stride: 33 is more than the 8 tokens of a window, so bytes between windows would be left out; give at most the length
// STRIDE: hybrid-run eval --help shows the usage
// STRIDE: error: --stride: 33 is more than the 32 tokens of a window

// The runtime takes the folder of a run as well as its file.
// RUN: stream-text %t/tiny.hbx %t/run RUN 20 > %t/folder
// RUN: stream-text %t/tiny.hbx %t/run/checkpoint.safetensors RUN 20 > %t/file
// RUN: cmp %t/folder %t/file
hybrid.model @tiny vocab(256) width(16) layers(1) tied trained(32) {
  hybrid.softmax heads(1) head_dim(16) position(nope)
}
