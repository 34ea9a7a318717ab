// One mixer, for its forward, gradient and step beside the oracle on a GPU.
hybrid.model @softmax_log_n vocab(32) width(32) layers(1) trained(512) {
  hybrid.softmax heads(1) head_dim(64) position(nope) logit_scale(log_n, trained = 512)
}
