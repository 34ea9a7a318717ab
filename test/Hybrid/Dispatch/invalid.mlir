// RUN: hybrid-opt %s -split-input-file -verify-diagnostics

func.func @no_program(%a: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{names program @absent, which is not in the module}}
  %0 = hybrid.dispatch @absent(%a) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

func.func private @p()
func.func @odd_ties(%a: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{ties has 1 entries, but they come in pairs of (result, input)}}
  %0 = hybrid.dispatch @p(%a) ties = [0] : (tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

func.func private @p()
func.func @tie_result(%a: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{ties names result 1, but there are 1}}
  %0 = hybrid.dispatch @p(%a) ties = [1, 0] : (tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

func.func private @p()
func.func @tie_input(%a: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{ties names input 3, but there are 1}}
  %0 = hybrid.dispatch @p(%a) ties = [0, 3] : (tensor<?x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// -----

func.func private @p()
func.func @tied_twice(%a: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  // expected-error @+1 {{ties result 1 to input 0, but one of them is tied already; a tie is one to one}}
  %0:2 = hybrid.dispatch @p(%a) ties = [0, 0, 1, 0]
      : (tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>)
  return %0#0, %0#1 : tensor<?x64xf32>, tensor<?x64xf32>
}

// -----

func.func private @p()
func.func @tied_types(%a: tensor<?x64xf32>) -> tensor<?x32xf32> {
  // expected-error @+1 {{ties result 0 of type 'tensor<?x32xf32>' to input 0 of type 'tensor<?x64xf32>'; tied values have one type}}
  %0 = hybrid.dispatch @p(%a) ties = [0, 0] : (tensor<?x64xf32>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}

// -----

// A bias is an operand too many: with an epilogue a product is not plain.
func.func private @p()
func.func @product_inputs(%a: tensor<?x64xf32>, %b: tensor<32x64xf32>, %c: tensor<32xf32>) -> tensor<?x32xf32> {
  // expected-error @+1 {{is a plain product of 3 inputs and 1 results, expected 2 inputs, then what it is added to and tied to, and 1 result}}
  %0 = hybrid.dispatch @p(%a, %b, %c) product(#hybrid.plain_product<transpose_b = true>)
      : (tensor<?x64xf32>, tensor<32x64xf32>, tensor<32xf32>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}

// -----

func.func private @p()
func.func @product_parts(%a: tensor<4x8x32xf32>) -> tensor<8x32xf32> {
  // expected-error @+1 {{is a plain product of parts, but input 0 is not the result of a dispatch of two factors}}
  %0 = hybrid.dispatch @p(%a) product(#hybrid.plain_product<parts = true>)
      : (tensor<4x8x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// -----

func.func private @p()
func.func @product_types(%a: tensor<?x64xbf16>, %b: tensor<32x64xf32>) -> tensor<?x32xf32> {
  // expected-error @+1 {{is a plain product of 'tensor<?x64xbf16>' and 'tensor<32x64xf32>' that gives 'tensor<?x32xf32>'; expected matrices, the factors of one float type}}
  %0 = hybrid.dispatch @p(%a, %b) product(#hybrid.plain_product<transpose_b = true>)
      : (tensor<?x64xbf16>, tensor<32x64xf32>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}

// -----

func.func private @p()
func.func @product_sizes(%a: tensor<?x64xf32>, %b: tensor<32x64xf32>) -> tensor<?x32xf32> {
  // expected-error @+1 {{rows, columns and depth do not agree}}
  %0 = hybrid.dispatch @p(%a, %b) product(#hybrid.plain_product)
      : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
  return %0 : tensor<?x32xf32>
}

// -----

func.func @regions(%a: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{has 0 guards and 2 regions; every region but the last has a guard}}
  %0 = hybrid.alternatives [] -> tensor<?x64xf32> {
    hybrid.yield %a : tensor<?x64xf32>
  }, {
    hybrid.yield %a : tensor<?x64xf32>
  }
  return %0 : tensor<?x64xf32>
}

// -----

func.func @guard_kind(%a: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{guard 4 : i64 is not an integer set}}
  %0 = hybrid.alternatives [4] -> tensor<?x64xf32> {
    hybrid.yield %a : tensor<?x64xf32>
  }, {
    hybrid.yield %a : tensor<?x64xf32>
  }
  return %0 : tensor<?x64xf32>
}

// -----

#two = affine_set<()[t, s, l, n, c, d] : (4 - t >= 0, 4 - l >= 0)>
func.func @guard_shape(%a: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{must be one constraint over the 6 symbols of a call}}
  %0 = hybrid.alternatives [#two] -> tensor<?x64xf32> {
    hybrid.yield %a : tensor<?x64xf32>
  }, {
    hybrid.yield %a : tensor<?x64xf32>
  }
  return %0 : tensor<?x64xf32>
}

// -----

#four = affine_set<()[t, s, l, n, c, d] : (4 - t == 0)>
func.func @guard_equality(%a: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{must be an inequality, so that it can be negated}}
  %0 = hybrid.alternatives [#four] -> tensor<?x64xf32> {
    hybrid.yield %a : tensor<?x64xf32>
  }, {
    hybrid.yield %a : tensor<?x64xf32>
  }
  return %0 : tensor<?x64xf32>
}

// -----

func.func private @p()
func.func @terminator(%a: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{region must end with hybrid.yield}}
  %0 = hybrid.alternatives [] -> tensor<?x64xf32> {
    %1 = hybrid.dispatch @p(%a) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  }
  return %0 : tensor<?x64xf32>
}

// -----

func.func @yield_types(%a: tensor<?x64xf32>) -> tensor<?x32xf32> {
  // expected-error @+1 {{region yields other types than the op's results}}
  %0 = hybrid.alternatives [] -> tensor<?x32xf32> {
    // expected-note @+1 {{yielded here}}
    hybrid.yield %a : tensor<?x64xf32>
  }
  return %0 : tensor<?x32xf32>
}

// -----

func.func @no_rows(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{has pieces of 0 rows, at least 1}}
  %0 = hybrid.pieces of 0 rows(%x) : (tensor<?x64xf32>) -> tensor<?x64xf32> {
  ^bb0(%a: tensor<?x64xf32>):
    hybrid.yield %a : tensor<?x64xf32>
  }
  return %0 : tensor<?x64xf32>
}

// -----

func.func @no_stream(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  // expected-error @+1 {{cuts 'tensor<8x64xf32>', which has no row per token; capture it whole}}
  %0 = hybrid.pieces of 4 rows(%x) : (tensor<8x64xf32>) -> tensor<8x64xf32> {
  ^bb0(%a: tensor<8x64xf32>):
    hybrid.yield %a : tensor<8x64xf32>
  }
  return %0 : tensor<8x64xf32>
}

// -----

func.func @dynamic_sum(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{has a sum of type 'tensor<?x64xf32>'; a sum over pieces has a static shape}}
  %0 = hybrid.pieces of 4 rows(%x) sums(%x) : (tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32> {
  ^bb0(%a: tensor<?x64xf32>, %b: tensor<?x64xf32>):
    hybrid.yield %b : tensor<?x64xf32>
  }
  return %0 : tensor<?x64xf32>
}

// -----

func.func @static_result(%x: tensor<?x64xf32>, %w: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{result 0 of type 'tensor<8xf32>' has no row per token; only sums are put together otherwise}}
  %0 = hybrid.pieces of 4 rows(%x) : (tensor<?x64xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<?x64xf32>):
    hybrid.yield %w : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

func.func @block_types(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{block has 1 arguments, expected one of the type of each of 1 operands}}
  %0 = hybrid.pieces of 4 rows(%x) : (tensor<?x64xf32>) -> tensor<?x64xf32> {
  ^bb0(%a: tensor<?x32xf32>):
    hybrid.yield %x : tensor<?x64xf32>
  }
  return %0 : tensor<?x64xf32>
}

// -----

func.func @whole_rows(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{reads 'tensor<?x64xf32>' from outside, whose rows are not those of a piece; make it an operand}}
  %0 = hybrid.pieces of 4 rows(%x) : (tensor<?x64xf32>) -> tensor<?x64xf32> {
  ^bb0(%a: tensor<?x64xf32>):
    hybrid.yield %y : tensor<?x64xf32>
  }
  return %0 : tensor<?x64xf32>
}

// -----

func.func @sum_without_result(%x: tensor<?x64xf32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{has 1 sums and 0 results; each sum is one}}
  hybrid.pieces of 4 rows(%x) sums(%w) : (tensor<?x64xf32>, tensor<8xf32>) -> () {
  ^bb0(%a: tensor<?x64xf32>, %b: tensor<8xf32>):
    hybrid.yield
  }
  return
}

// -----

func.func @sum_type(%x: tensor<?x64xf32>, %w: tensor<8xf32>, %v: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{sum of type 'tensor<8xf32>' gives a result of type 'tensor<4xf32>'}}
  %0 = hybrid.pieces of 4 rows(%x) sums(%w) : (tensor<?x64xf32>, tensor<8xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<?x64xf32>, %b: tensor<8xf32>):
    hybrid.yield %v : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @pieces_yield(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
  // expected-error @+1 {{region yields other types than the op's results}}
  %0 = hybrid.pieces of 4 rows(%x) : (tensor<?x64xf32>) -> tensor<?x32xf32> {
  ^bb0(%a: tensor<?x64xf32>):
    // expected-note @+1 {{yielded here}}
    hybrid.yield %a : tensor<?x64xf32>
  }
  return %0 : tensor<?x32xf32>
}

// -----

func.func private @p()
func.func @pieces_terminator(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  // expected-error @+1 {{region must end with hybrid.yield}}
  %0 = hybrid.pieces of 4 rows(%x) : (tensor<?x64xf32>) -> tensor<?x64xf32> {
  ^bb0(%a: tensor<?x64xf32>):
    %1 = hybrid.dispatch @p(%a) : (tensor<?x64xf32>) -> tensor<?x64xf32>
  }
  return %0 : tensor<?x64xf32>
}

// -----

func.func @nested(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %0 = hybrid.pieces of 4 rows(%x) : (tensor<?x64xf32>) -> tensor<?x64xf32> {
  ^bb0(%a: tensor<?x64xf32>):
    // expected-error @+1 {{stands in hybrid.pieces; pieces are made of all rows of a function's stream}}
    %1 = hybrid.pieces of 4 rows(%a) : (tensor<?x64xf32>) -> tensor<?x64xf32> {
    ^bb0(%b: tensor<?x64xf32>):
      hybrid.yield %b : tensor<?x64xf32>
    }
    hybrid.yield %1 : tensor<?x64xf32>
  }
  return %0 : tensor<?x64xf32>
}
