// Gated DeltaNet and NoPE attention, three to one, over bytes: 27 M parameters, the
// size for the King James Bible on one GPU. It could learn the four million bytes by
// heart: small batches, a strong pull to small weights, some dropout and three epochs
// keep it from that. An H200 takes 20 seconds for 1.65 bits per byte with
//
//   hybrid-run train --batch=8 --lr=1e-3 --weight-decay=1 --lr-floor=0.02
//     --beta2=0.98 --bytes=12000000
//
// and five more for 1.36 with `hybrid-run eval --batch=2 --adapt=1e-4`, which goes on
// learning from the text it is evaluated on (docs/performance.md).
hybrid.model @book_25m vocab(256) width(512) layers(8) tied trained(512) dropout(0.1) dtype(bf16) {
  hybrid.mix ratio(3 : 1) {
    hybrid.gdn heads(8) head_dim(64) value_dim(64)
    hybrid.softmax heads(8) head_dim(64) position(nope)
  }
  hybrid.mlp swiglu(1408)
}
