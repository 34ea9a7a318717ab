// Gated DeltaNet and NoPE attention, three to one, over bytes: 27 M parameters, the
// size for the same book on one GPU. It could learn the four million bytes by heart:
// with dropout it may read them eight times, without it is best after two. With
// dtype(bf16), --batch=32 --lr=2e-3 and two epochs (--bytes=8400000) an H200 takes ten
// seconds for 1.69 bits per byte without dropout (docs/performance.md).
hybrid.model @book_25m vocab(256) width(512) layers(8) tied trained(512) dropout(0.2) {
  hybrid.mix ratio(3 : 1) {
    hybrid.gdn heads(8) head_dim(64) value_dim(64)
    hybrid.softmax heads(8) head_dim(64) position(nope)
  }
  hybrid.mlp swiglu(1408)
}
