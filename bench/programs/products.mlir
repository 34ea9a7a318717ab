// The three products of training, at shapes of the 376M and 776M models and 32768
// tokens, as the compiler's strategies make them: y = x Wᵀ, dx = dy W, dW = dyᵀ x.
// Names say what and the shape of W, [out, in].
module {
  func.func @forward_1024x1024(%x: tensor<?x1024xbf16>, %w: tensor<1024x1024xbf16>) -> tensor<?x1024xbf16> attributes {hybrid.entry = "forward_1024x1024"} {
    %y = hybrid.product %x, %w transpose_b : (tensor<?x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<?x1024xbf16>
    return %y : tensor<?x1024xbf16>
  }
  func.func @input_1024x1024(%dy: tensor<?x1024xbf16>, %w: tensor<1024x1024xbf16>) -> tensor<?x1024xbf16> attributes {hybrid.entry = "input_1024x1024"} {
    %y = hybrid.product %dy, %w : (tensor<?x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<?x1024xbf16>
    return %y : tensor<?x1024xbf16>
  }
  func.func @weight_1024x1024(%dy: tensor<?x1024xbf16>, %x: tensor<?x1024xbf16>) -> tensor<1024x1024xf32> attributes {hybrid.entry = "weight_1024x1024"} {
    %y = hybrid.product %dy, %x transpose_a : (tensor<?x1024xbf16>, tensor<?x1024xbf16>) -> tensor<1024x1024xf32>
    return %y : tensor<1024x1024xf32>
  }

  func.func @forward_3584x1024(%x: tensor<?x1024xbf16>, %w: tensor<3584x1024xbf16>) -> tensor<?x3584xbf16> attributes {hybrid.entry = "forward_3584x1024"} {
    %y = hybrid.product %x, %w transpose_b : (tensor<?x1024xbf16>, tensor<3584x1024xbf16>) -> tensor<?x3584xbf16>
    return %y : tensor<?x3584xbf16>
  }
  func.func @input_3584x1024(%dy: tensor<?x3584xbf16>, %w: tensor<3584x1024xbf16>) -> tensor<?x1024xbf16> attributes {hybrid.entry = "input_3584x1024"} {
    %y = hybrid.product %dy, %w : (tensor<?x3584xbf16>, tensor<3584x1024xbf16>) -> tensor<?x1024xbf16>
    return %y : tensor<?x1024xbf16>
  }
  func.func @weight_3584x1024(%dy: tensor<?x3584xbf16>, %x: tensor<?x1024xbf16>) -> tensor<3584x1024xf32> attributes {hybrid.entry = "weight_3584x1024"} {
    %y = hybrid.product %dy, %x transpose_a : (tensor<?x3584xbf16>, tensor<?x1024xbf16>) -> tensor<3584x1024xf32>
    return %y : tensor<3584x1024xf32>
  }

  func.func @forward_1024x3584(%x: tensor<?x3584xbf16>, %w: tensor<1024x3584xbf16>) -> tensor<?x1024xbf16> attributes {hybrid.entry = "forward_1024x3584"} {
    %y = hybrid.product %x, %w transpose_b : (tensor<?x3584xbf16>, tensor<1024x3584xbf16>) -> tensor<?x1024xbf16>
    return %y : tensor<?x1024xbf16>
  }
  func.func @input_1024x3584(%dy: tensor<?x1024xbf16>, %w: tensor<1024x3584xbf16>) -> tensor<?x3584xbf16> attributes {hybrid.entry = "input_1024x3584"} {
    %y = hybrid.product %dy, %w : (tensor<?x1024xbf16>, tensor<1024x3584xbf16>) -> tensor<?x3584xbf16>
    return %y : tensor<?x3584xbf16>
  }
  func.func @weight_1024x3584(%dy: tensor<?x1024xbf16>, %x: tensor<?x3584xbf16>) -> tensor<1024x3584xf32> attributes {hybrid.entry = "weight_1024x3584"} {
    %y = hybrid.product %dy, %x transpose_a : (tensor<?x1024xbf16>, tensor<?x3584xbf16>) -> tensor<1024x3584xf32>
    return %y : tensor<1024x3584xf32>
  }

  func.func @forward_5120x1536(%x: tensor<?x1536xbf16>, %w: tensor<5120x1536xbf16>) -> tensor<?x5120xbf16> attributes {hybrid.entry = "forward_5120x1536"} {
    %y = hybrid.product %x, %w transpose_b : (tensor<?x1536xbf16>, tensor<5120x1536xbf16>) -> tensor<?x5120xbf16>
    return %y : tensor<?x5120xbf16>
  }
  func.func @input_5120x1536(%dy: tensor<?x5120xbf16>, %w: tensor<5120x1536xbf16>) -> tensor<?x1536xbf16> attributes {hybrid.entry = "input_5120x1536"} {
    %y = hybrid.product %dy, %w : (tensor<?x5120xbf16>, tensor<5120x1536xbf16>) -> tensor<?x1536xbf16>
    return %y : tensor<?x1536xbf16>
  }
  func.func @weight_5120x1536(%dy: tensor<?x5120xbf16>, %x: tensor<?x1536xbf16>) -> tensor<5120x1536xf32> attributes {hybrid.entry = "weight_5120x1536"} {
    %y = hybrid.product %dy, %x transpose_a : (tensor<?x5120xbf16>, tensor<?x1536xbf16>) -> tensor<5120x1536xf32>
    return %y : tensor<5120x1536xf32>
  }

  // The head, whose logits are f32, and whose gradients are too.
  func.func @forward_128256x1024(%x: tensor<?x1024xbf16>, %w: tensor<128256x1024xbf16>) -> tensor<?x128256xf32> attributes {hybrid.entry = "forward_128256x1024"} {
    %y = hybrid.product %x, %w transpose_b : (tensor<?x1024xbf16>, tensor<128256x1024xbf16>) -> tensor<?x128256xf32>
    return %y : tensor<?x128256xf32>
  }
  func.func @input_128256x1024(%dy: tensor<?x128256xbf16>, %w: tensor<128256x1024xbf16>) -> tensor<?x1024xbf16> attributes {hybrid.entry = "input_128256x1024"} {
    %y = hybrid.product %dy, %w : (tensor<?x128256xbf16>, tensor<128256x1024xbf16>) -> tensor<?x1024xbf16>
    return %y : tensor<?x1024xbf16>
  }
  func.func @weight_128256x1024(%dy: tensor<?x128256xbf16>, %x: tensor<?x1024xbf16>) -> tensor<128256x1024xf32> attributes {hybrid.entry = "weight_128256x1024"} {
    %y = hybrid.product %dy, %x transpose_a : (tensor<?x128256xbf16>, tensor<?x1024xbf16>) -> tensor<128256x1024xf32>
    return %y : tensor<128256x1024xf32>
  }
}
