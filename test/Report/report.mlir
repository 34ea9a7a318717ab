// Numbers small enough to check by hand.
// RUN: hybrid-opt %s -hybrid-print-report=context=16 -o /dev/null | FileCheck %s --strict-whitespace

// Embedding and head: 2 · 256·64. Outside of the mixers a layer has 2 norms of 64
// and an MLP of 3 · 64·32.
// gla: q and k 32·64, v, g and o 64·64, gate 8·64 + 32·8 + 32, norm 32.
// window: q and o 64·64, k and v 32·64.
hybrid.model @mixed vocab(256) width(64) layers(2) trained(64) {
  hybrid.mix ratio(1 : 1) {
    hybrid.gla heads(2) head_dim(16) value_dim(32) gate_rank(8)
    hybrid.softmax heads(4) kv_heads(2) head_dim(16) position(rope) window(8) sinks(1)
  }
  hybrid.mlp swiglu(32)
}

// CHECK-LABEL: {{^}}model @mixed: 2 layers, width 64, vocab 256
// CHECK:       {{^}}parameters                      74,880{{$}}
// CHECK-NEXT:  {{^}}  without embedding and head    42,112{{$}}
// A ring of 8 + 1 rows, 2 heads of 16, K and V, f32; a state of 2·16·32 f32.
// CHECK-NEXT:  {{^}}cache bytes per token                0{{$}}
// CHECK-NEXT:  {{^}}state bytes per sequence         6,400{{$}}
// CHECK-NEXT:  {{^}}both at 16 tokens                6,400{{$}}

// CHECK:       {{^}}layer  parameters  cache/token  state  mixer
// CHECK-NEXT:  {{^}}0          23,488            0  4,096  gla, 2 heads of 16 x 32
// CHECK-NEXT:  {{^}}1          18,560            0  2,304  window 8, rope, 4 heads of 16 over 2, 1 sinks

// CHECK:       {{^}}layer 0
// A product is 2·in·out; its bytes at 16 tokens are weights/16 and both rows.
// CHECK:       {{^}}  mixer.q_proj {{ +}}4.1 k  896.0   4.1 k   8.6 k
// Read-out 2, write 2, decay 1 per state element: 5·2·16·32.
// CHECK:       {{^}}  mixer.recurrence {{ +}}5.1 k
// CHECK:       {{^}}layer 1
// Visible keys of 16 queries: 1 + … + 9 + 7·9 = 108 per head; 4·4·16·108/16.
// Decode: 9 keys.
// CHECK:       {{^}}  mixer.attention {{ +}}1.7 k  784.0   2.3 k   3.1 k
