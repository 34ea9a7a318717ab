// Two models in one file are put side by side.
// RUN: hybrid-opt %s -hybrid-print-report -o /dev/null | FileCheck %s

hybrid.model @full vocab(256) width(64) layers(4) trained(128) {
  hybrid.softmax heads(2) head_dim(32) position(nope)
}
hybrid.model @half vocab(256) width(64) layers(4) trained(128) {
  hybrid.mix ratio(1 : 1) {
    hybrid.softmax heads(2) head_dim(32) position(nope) window(32)
    hybrid.softmax heads(2) head_dim(32) position(nope)
  }
}

// CHECK:      {{^ ?}}@full    @half  ratio
// CHECK-NEXT: parameters 98.6 k   98.6 k  1.000
// CHECK-NEXT:   without embedding and head 65.9 k   65.9 k  1.000
// CHECK-NEXT: cache bytes per token 2.0 k    1.0 k  0.500
// CHECK-NEXT: state bytes per sequence 0.0   32.8 k
// CHECK-NEXT: both at 128 tokens 262.1 k  163.8 k  0.625
// CHECK-NEXT: both at 2,048 tokens 4.2 M    2.1 M  0.508
// CHECK:      decode, operations
