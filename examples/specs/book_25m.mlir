// Gated DeltaNet and NoPE attention, three to one, over bytes: 27 M parameters, the
// size for the same book on one GPU. It could learn the four million bytes by heart:
// dropout lets it read them many times and still learn the language.
hybrid.model @book_25m vocab(256) width(512) layers(8) tied trained(512) dropout(0.2) {
  hybrid.mix ratio(3 : 1) {
    hybrid.gdn heads(8) head_dim(64) value_dim(64)
    hybrid.softmax heads(8) head_dim(64) position(nope)
  }
  hybrid.mlp swiglu(1408)
}
