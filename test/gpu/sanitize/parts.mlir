// What `long` has without its words, for racecheck, which takes minutes for those: a
// recurrence in parts. The pieces of a head run the programs of a head without any.
hybrid.model @parts vocab(1056) width(32) layers(1) trained(64) {
  hybrid.gla heads(1) head_dim(16) value_dim(16)
}
