hybrid.model @"<script>alert('1')</script>&\22\07<b onclick=x>" vocab(64) width(64) layers(2) trained(64) {
  hybrid.softmax heads(2) head_dim(32) position(nope) window(4)
}
