// Projections with what follows them, at the shapes of the 376M and 776M models,
// as functions of graph operations: see bench/gpu_epilogues.py.
module {
  func.func @swiglu_376m(%x: tensor<?x1024xbf16>, %wg: tensor<3584x1024xbf16>, %wu: tensor<3584x1024xbf16>) -> (tensor<?x3584xbf16>) attributes {hybrid.entry = "swiglu_376m"} {
    %g = hybrid.product %x, %wg transpose_b : (tensor<?x1024xbf16>, tensor<3584x1024xbf16>) -> tensor<?x3584xbf16>
    %u = hybrid.product %x, %wu transpose_b : (tensor<?x1024xbf16>, tensor<3584x1024xbf16>) -> tensor<?x3584xbf16>
    %h = hybrid.rowwise (%a = %g : tensor<?x3584xbf16>, %b = %u : tensor<?x3584xbf16>) -> tensor<?x3584xbf16> {
      %1 = hybrid.cast %a : tensor<?x3584xbf16> to tensor<?x3584xf32>
      %2 = hybrid.silu %1 : tensor<?x3584xf32>
      %3 = hybrid.cast %b : tensor<?x3584xbf16> to tensor<?x3584xf32>
      %4 = hybrid.mul %2, %3 : tensor<?x3584xf32>, tensor<?x3584xf32>
      %5 = hybrid.cast %4 : tensor<?x3584xf32> to tensor<?x3584xbf16>
      hybrid.yield %5 : tensor<?x3584xbf16>
    }
    return %h : tensor<?x3584xbf16>
  }
  func.func @swiglu_kept_376m(%x: tensor<?x1024xbf16>, %wg: tensor<3584x1024xbf16>, %wu: tensor<3584x1024xbf16>) -> (tensor<?x3584xbf16>, tensor<?x3584xbf16>, tensor<?x3584xbf16>) attributes {hybrid.entry = "swiglu_kept_376m"} {
    %g = hybrid.product %x, %wg transpose_b : (tensor<?x1024xbf16>, tensor<3584x1024xbf16>) -> tensor<?x3584xbf16>
    %u = hybrid.product %x, %wu transpose_b : (tensor<?x1024xbf16>, tensor<3584x1024xbf16>) -> tensor<?x3584xbf16>
    %h = hybrid.rowwise (%a = %g : tensor<?x3584xbf16>, %b = %u : tensor<?x3584xbf16>) -> tensor<?x3584xbf16> {
      %1 = hybrid.cast %a : tensor<?x3584xbf16> to tensor<?x3584xf32>
      %2 = hybrid.silu %1 : tensor<?x3584xf32>
      %3 = hybrid.cast %b : tensor<?x3584xbf16> to tensor<?x3584xf32>
      %4 = hybrid.mul %2, %3 : tensor<?x3584xf32>, tensor<?x3584xf32>
      %5 = hybrid.cast %4 : tensor<?x3584xf32> to tensor<?x3584xbf16>
      hybrid.yield %5 : tensor<?x3584xbf16>
    }
    return %h, %g, %u : tensor<?x3584xbf16>, tensor<?x3584xbf16>, tensor<?x3584xbf16>
  }
  func.func @swiglu_grad_376m(%dy: tensor<?x1024xbf16>, %wd: tensor<1024x3584xbf16>, %g: tensor<?x3584xbf16>, %u: tensor<?x3584xbf16>) -> (tensor<?x3584xbf16>, tensor<?x3584xbf16>) attributes {hybrid.entry = "swiglu_grad_376m"} {
    %dh = hybrid.product %dy, %wd : (tensor<?x1024xbf16>, tensor<1024x3584xbf16>) -> tensor<?x3584xbf16>
    %d:2 = hybrid.rowwise (%a = %dh : tensor<?x3584xbf16>, %b = %u : tensor<?x3584xbf16>, %c = %g : tensor<?x3584xbf16>) -> (tensor<?x3584xbf16>, tensor<?x3584xbf16>) {
      %1 = hybrid.cast %a : tensor<?x3584xbf16> to tensor<?x3584xf32>
      %2 = hybrid.cast %b : tensor<?x3584xbf16> to tensor<?x3584xf32>
      %3 = hybrid.mul %1, %2 : tensor<?x3584xf32>, tensor<?x3584xf32>
      %4 = hybrid.cast %c : tensor<?x3584xbf16> to tensor<?x3584xf32>
      %5 = hybrid.silu %4 : tensor<?x3584xf32>
      %6 = hybrid.mul %1, %5 : tensor<?x3584xf32>, tensor<?x3584xf32>
      %7 = hybrid.cast %6 : tensor<?x3584xf32> to tensor<?x3584xbf16>
      %8 = hybrid.silu_grad %4, %3 : tensor<?x3584xf32>
      %9 = hybrid.cast %8 : tensor<?x3584xf32> to tensor<?x3584xbf16>
      hybrid.yield %7, %9 : tensor<?x3584xbf16>, tensor<?x3584xbf16>
    }
    return %d#0, %d#1 : tensor<?x3584xbf16>, tensor<?x3584xbf16>
  }
  func.func @rotary_376m(%x: tensor<?x1024xbf16>, %w: tensor<1024x1024xbf16>, %segments: !hybrid.segments) -> (tensor<?x8x128xbf16>) attributes {hybrid.entry = "rotary_376m"} {
    %y = hybrid.product %x, %w transpose_b : (tensor<?x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<?x1024xbf16>
    %s = hybrid.reshape %y : tensor<?x1024xbf16> -> tensor<?x8x128xbf16>
    %r = hybrid.rowwise (%a = %s : tensor<?x8x128xbf16>, %b = %segments : !hybrid.segments) -> tensor<?x8x128xbf16> {
      %1 = hybrid.cast %a : tensor<?x8x128xbf16> to tensor<?x8x128xf32>
      %2 = hybrid.rotary %1, %b base 1.000000e+04 dim 128 : tensor<?x8x128xf32>
      %3 = hybrid.cast %2 : tensor<?x8x128xf32> to tensor<?x8x128xbf16>
      hybrid.yield %3 : tensor<?x8x128xbf16>
    }
    return %r : tensor<?x8x128xbf16>
  }
  func.func @residual_out_376m(%x: tensor<?x1024xbf16>, %w: tensor<1024x1024xbf16>, %old: tensor<?x1024xbf16>, %gain: tensor<1024xf32>) -> (tensor<?x1024xbf16>, tensor<?x1024xbf16>) attributes {hybrid.entry = "residual_out_376m"} {
    %y = hybrid.product %x, %w transpose_b : (tensor<?x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<?x1024xbf16>
    %d:2 = hybrid.rowwise (%a = %old : tensor<?x1024xbf16>, %b = %y : tensor<?x1024xbf16>, %c = %gain : tensor<1024xf32>) -> (tensor<?x1024xbf16>, tensor<?x1024xbf16>) {
      %1 = hybrid.cast %a : tensor<?x1024xbf16> to tensor<?x1024xf32>
      %2 = hybrid.cast %b : tensor<?x1024xbf16> to tensor<?x1024xf32>
      %3 = hybrid.add %1, %2 : tensor<?x1024xf32>, tensor<?x1024xf32>
      %4 = hybrid.cast %3 : tensor<?x1024xf32> to tensor<?x1024xbf16>
      %5 = hybrid.cast %4 : tensor<?x1024xbf16> to tensor<?x1024xf32>
      %6 = hybrid.normalize rms %5 epsilon 1.0e-05 : tensor<?x1024xf32>
      %7 = hybrid.mul %6, %c : tensor<?x1024xf32>, tensor<1024xf32>
      %8 = hybrid.cast %7 : tensor<?x1024xf32> to tensor<?x1024xbf16>
      hybrid.yield %4, %8 : tensor<?x1024xbf16>, tensor<?x1024xbf16>
    }
    return %d#0, %d#1 : tensor<?x1024xbf16>, tensor<?x1024xbf16>
  }
  func.func @residual_down_376m(%x: tensor<?x3584xbf16>, %w: tensor<1024x3584xbf16>, %old: tensor<?x1024xbf16>, %gain: tensor<1024xf32>) -> (tensor<?x1024xbf16>, tensor<?x1024xbf16>) attributes {hybrid.entry = "residual_down_376m"} {
    %y = hybrid.product %x, %w transpose_b : (tensor<?x3584xbf16>, tensor<1024x3584xbf16>) -> tensor<?x1024xbf16>
    %d:2 = hybrid.rowwise (%a = %old : tensor<?x1024xbf16>, %b = %y : tensor<?x1024xbf16>, %c = %gain : tensor<1024xf32>) -> (tensor<?x1024xbf16>, tensor<?x1024xbf16>) {
      %1 = hybrid.cast %a : tensor<?x1024xbf16> to tensor<?x1024xf32>
      %2 = hybrid.cast %b : tensor<?x1024xbf16> to tensor<?x1024xf32>
      %3 = hybrid.add %1, %2 : tensor<?x1024xf32>, tensor<?x1024xf32>
      %4 = hybrid.cast %3 : tensor<?x1024xf32> to tensor<?x1024xbf16>
      %5 = hybrid.cast %4 : tensor<?x1024xbf16> to tensor<?x1024xf32>
      %6 = hybrid.normalize rms %5 epsilon 1.0e-05 : tensor<?x1024xf32>
      %7 = hybrid.mul %6, %c : tensor<?x1024xf32>, tensor<1024xf32>
      %8 = hybrid.cast %7 : tensor<?x1024xf32> to tensor<?x1024xbf16>
      hybrid.yield %4, %8 : tensor<?x1024xbf16>, tensor<?x1024xbf16>
    }
    return %d#0, %d#1 : tensor<?x1024xbf16>, tensor<?x1024xbf16>
  }
  func.func @bias_376m(%x: tensor<?x1024xbf16>, %w: tensor<1024x1024xbf16>, %bias: tensor<1024xf32>) -> (tensor<?x1024xbf16>) attributes {hybrid.entry = "bias_376m"} {
    %y = hybrid.product %x, %w transpose_b : (tensor<?x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<?x1024xbf16>
    %r = hybrid.rowwise (%a = %y : tensor<?x1024xbf16>, %b = %bias : tensor<1024xf32>) -> tensor<?x1024xbf16> {
      %1 = hybrid.cast %a : tensor<?x1024xbf16> to tensor<?x1024xf32>
      %2 = hybrid.add %1, %b : tensor<?x1024xf32>, tensor<1024xf32>
      %3 = hybrid.cast %2 : tensor<?x1024xf32> to tensor<?x1024xbf16>
      hybrid.yield %3 : tensor<?x1024xbf16>
    }
    return %r : tensor<?x1024xbf16>
  }
  func.func @swiglu_776m(%x: tensor<?x1536xbf16>, %wg: tensor<5376x1536xbf16>, %wu: tensor<5376x1536xbf16>) -> (tensor<?x5376xbf16>) attributes {hybrid.entry = "swiglu_776m"} {
    %g = hybrid.product %x, %wg transpose_b : (tensor<?x1536xbf16>, tensor<5376x1536xbf16>) -> tensor<?x5376xbf16>
    %u = hybrid.product %x, %wu transpose_b : (tensor<?x1536xbf16>, tensor<5376x1536xbf16>) -> tensor<?x5376xbf16>
    %h = hybrid.rowwise (%a = %g : tensor<?x5376xbf16>, %b = %u : tensor<?x5376xbf16>) -> tensor<?x5376xbf16> {
      %1 = hybrid.cast %a : tensor<?x5376xbf16> to tensor<?x5376xf32>
      %2 = hybrid.silu %1 : tensor<?x5376xf32>
      %3 = hybrid.cast %b : tensor<?x5376xbf16> to tensor<?x5376xf32>
      %4 = hybrid.mul %2, %3 : tensor<?x5376xf32>, tensor<?x5376xf32>
      %5 = hybrid.cast %4 : tensor<?x5376xf32> to tensor<?x5376xbf16>
      hybrid.yield %5 : tensor<?x5376xbf16>
    }
    return %h : tensor<?x5376xbf16>
  }
  func.func @swiglu_kept_776m(%x: tensor<?x1536xbf16>, %wg: tensor<5376x1536xbf16>, %wu: tensor<5376x1536xbf16>) -> (tensor<?x5376xbf16>, tensor<?x5376xbf16>, tensor<?x5376xbf16>) attributes {hybrid.entry = "swiglu_kept_776m"} {
    %g = hybrid.product %x, %wg transpose_b : (tensor<?x1536xbf16>, tensor<5376x1536xbf16>) -> tensor<?x5376xbf16>
    %u = hybrid.product %x, %wu transpose_b : (tensor<?x1536xbf16>, tensor<5376x1536xbf16>) -> tensor<?x5376xbf16>
    %h = hybrid.rowwise (%a = %g : tensor<?x5376xbf16>, %b = %u : tensor<?x5376xbf16>) -> tensor<?x5376xbf16> {
      %1 = hybrid.cast %a : tensor<?x5376xbf16> to tensor<?x5376xf32>
      %2 = hybrid.silu %1 : tensor<?x5376xf32>
      %3 = hybrid.cast %b : tensor<?x5376xbf16> to tensor<?x5376xf32>
      %4 = hybrid.mul %2, %3 : tensor<?x5376xf32>, tensor<?x5376xf32>
      %5 = hybrid.cast %4 : tensor<?x5376xf32> to tensor<?x5376xbf16>
      hybrid.yield %5 : tensor<?x5376xbf16>
    }
    return %h, %g, %u : tensor<?x5376xbf16>, tensor<?x5376xbf16>, tensor<?x5376xbf16>
  }
  func.func @swiglu_grad_776m(%dy: tensor<?x1536xbf16>, %wd: tensor<1536x5376xbf16>, %g: tensor<?x5376xbf16>, %u: tensor<?x5376xbf16>) -> (tensor<?x5376xbf16>, tensor<?x5376xbf16>) attributes {hybrid.entry = "swiglu_grad_776m"} {
    %dh = hybrid.product %dy, %wd : (tensor<?x1536xbf16>, tensor<1536x5376xbf16>) -> tensor<?x5376xbf16>
    %d:2 = hybrid.rowwise (%a = %dh : tensor<?x5376xbf16>, %b = %u : tensor<?x5376xbf16>, %c = %g : tensor<?x5376xbf16>) -> (tensor<?x5376xbf16>, tensor<?x5376xbf16>) {
      %1 = hybrid.cast %a : tensor<?x5376xbf16> to tensor<?x5376xf32>
      %2 = hybrid.cast %b : tensor<?x5376xbf16> to tensor<?x5376xf32>
      %3 = hybrid.mul %1, %2 : tensor<?x5376xf32>, tensor<?x5376xf32>
      %4 = hybrid.cast %c : tensor<?x5376xbf16> to tensor<?x5376xf32>
      %5 = hybrid.silu %4 : tensor<?x5376xf32>
      %6 = hybrid.mul %1, %5 : tensor<?x5376xf32>, tensor<?x5376xf32>
      %7 = hybrid.cast %6 : tensor<?x5376xf32> to tensor<?x5376xbf16>
      %8 = hybrid.silu_grad %4, %3 : tensor<?x5376xf32>
      %9 = hybrid.cast %8 : tensor<?x5376xf32> to tensor<?x5376xbf16>
      hybrid.yield %7, %9 : tensor<?x5376xbf16>, tensor<?x5376xbf16>
    }
    return %d#0, %d#1 : tensor<?x5376xbf16>, tensor<?x5376xbf16>
  }
  func.func @rotary_776m(%x: tensor<?x1536xbf16>, %w: tensor<1536x1536xbf16>, %segments: !hybrid.segments) -> (tensor<?x12x128xbf16>) attributes {hybrid.entry = "rotary_776m"} {
    %y = hybrid.product %x, %w transpose_b : (tensor<?x1536xbf16>, tensor<1536x1536xbf16>) -> tensor<?x1536xbf16>
    %s = hybrid.reshape %y : tensor<?x1536xbf16> -> tensor<?x12x128xbf16>
    %r = hybrid.rowwise (%a = %s : tensor<?x12x128xbf16>, %b = %segments : !hybrid.segments) -> tensor<?x12x128xbf16> {
      %1 = hybrid.cast %a : tensor<?x12x128xbf16> to tensor<?x12x128xf32>
      %2 = hybrid.rotary %1, %b base 1.000000e+04 dim 128 : tensor<?x12x128xf32>
      %3 = hybrid.cast %2 : tensor<?x12x128xf32> to tensor<?x12x128xbf16>
      hybrid.yield %3 : tensor<?x12x128xbf16>
    }
    return %r : tensor<?x12x128xbf16>
  }
  func.func @residual_out_776m(%x: tensor<?x1536xbf16>, %w: tensor<1536x1536xbf16>, %old: tensor<?x1536xbf16>, %gain: tensor<1536xf32>) -> (tensor<?x1536xbf16>, tensor<?x1536xbf16>) attributes {hybrid.entry = "residual_out_776m"} {
    %y = hybrid.product %x, %w transpose_b : (tensor<?x1536xbf16>, tensor<1536x1536xbf16>) -> tensor<?x1536xbf16>
    %d:2 = hybrid.rowwise (%a = %old : tensor<?x1536xbf16>, %b = %y : tensor<?x1536xbf16>, %c = %gain : tensor<1536xf32>) -> (tensor<?x1536xbf16>, tensor<?x1536xbf16>) {
      %1 = hybrid.cast %a : tensor<?x1536xbf16> to tensor<?x1536xf32>
      %2 = hybrid.cast %b : tensor<?x1536xbf16> to tensor<?x1536xf32>
      %3 = hybrid.add %1, %2 : tensor<?x1536xf32>, tensor<?x1536xf32>
      %4 = hybrid.cast %3 : tensor<?x1536xf32> to tensor<?x1536xbf16>
      %5 = hybrid.cast %4 : tensor<?x1536xbf16> to tensor<?x1536xf32>
      %6 = hybrid.normalize rms %5 epsilon 1.0e-05 : tensor<?x1536xf32>
      %7 = hybrid.mul %6, %c : tensor<?x1536xf32>, tensor<1536xf32>
      %8 = hybrid.cast %7 : tensor<?x1536xf32> to tensor<?x1536xbf16>
      hybrid.yield %4, %8 : tensor<?x1536xbf16>, tensor<?x1536xbf16>
    }
    return %d#0, %d#1 : tensor<?x1536xbf16>, tensor<?x1536xbf16>
  }
  func.func @residual_down_776m(%x: tensor<?x5376xbf16>, %w: tensor<1536x5376xbf16>, %old: tensor<?x1536xbf16>, %gain: tensor<1536xf32>) -> (tensor<?x1536xbf16>, tensor<?x1536xbf16>) attributes {hybrid.entry = "residual_down_776m"} {
    %y = hybrid.product %x, %w transpose_b : (tensor<?x5376xbf16>, tensor<1536x5376xbf16>) -> tensor<?x1536xbf16>
    %d:2 = hybrid.rowwise (%a = %old : tensor<?x1536xbf16>, %b = %y : tensor<?x1536xbf16>, %c = %gain : tensor<1536xf32>) -> (tensor<?x1536xbf16>, tensor<?x1536xbf16>) {
      %1 = hybrid.cast %a : tensor<?x1536xbf16> to tensor<?x1536xf32>
      %2 = hybrid.cast %b : tensor<?x1536xbf16> to tensor<?x1536xf32>
      %3 = hybrid.add %1, %2 : tensor<?x1536xf32>, tensor<?x1536xf32>
      %4 = hybrid.cast %3 : tensor<?x1536xf32> to tensor<?x1536xbf16>
      %5 = hybrid.cast %4 : tensor<?x1536xbf16> to tensor<?x1536xf32>
      %6 = hybrid.normalize rms %5 epsilon 1.0e-05 : tensor<?x1536xf32>
      %7 = hybrid.mul %6, %c : tensor<?x1536xf32>, tensor<1536xf32>
      %8 = hybrid.cast %7 : tensor<?x1536xf32> to tensor<?x1536xbf16>
      hybrid.yield %4, %8 : tensor<?x1536xbf16>, tensor<?x1536xbf16>
    }
    return %d#0, %d#1 : tensor<?x1536xbf16>, tensor<?x1536xbf16>
  }
  func.func @bias_776m(%x: tensor<?x1536xbf16>, %w: tensor<1536x1536xbf16>, %bias: tensor<1536xf32>) -> (tensor<?x1536xbf16>) attributes {hybrid.entry = "bias_776m"} {
    %y = hybrid.product %x, %w transpose_b : (tensor<?x1536xbf16>, tensor<1536x1536xbf16>) -> tensor<?x1536xbf16>
    %r = hybrid.rowwise (%a = %y : tensor<?x1536xbf16>, %b = %bias : tensor<1536xf32>) -> tensor<?x1536xbf16> {
      %1 = hybrid.cast %a : tensor<?x1536xbf16> to tensor<?x1536xf32>
      %2 = hybrid.add %1, %b : tensor<?x1536xf32>, tensor<1536xf32>
      %3 = hybrid.cast %2 : tensor<?x1536xf32> to tensor<?x1536xbf16>
      hybrid.yield %3 : tensor<?x1536xbf16>
    }
    return %r : tensor<?x1536xbf16>
  }
}
