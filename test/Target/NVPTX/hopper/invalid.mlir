// RUN: hybrid-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{a tensor map holds bf16 or f16, got}}
func.func private @f(!hopper.map<128x64xf32>)

// -----

// expected-error @+1 {{a box has 1 to 4 dims, the last of 64 elements, got <128, 32>}}
func.func private @f(!hopper.map<128x32xbf16>)

// -----

// expected-error @+1 {{a box has 1 to 256 elements along a dim, got 512; read the tile as several boxes}}
func.func private @f(!hopper.map<512x64xbf16>)

// -----

// expected-error @+1 {{a buffer holds bf16 or f16, got}}
func.func private @f(!hopper.buffer<4x128x64xf32>)

// -----

// expected-error @+1 {{a buffer is copies x rows x columns, got <128, 64>}}
func.func private @f(!hopper.buffer<128x64xbf16>)

// -----

// expected-error @+1 {{a buffer has a multiple of 8 rows up to 256, got 100; the swizzle repeats every 8 rows}}
func.func private @f(!hopper.buffer<4x100x64xbf16>)

// -----

// expected-error @+1 {{a buffer has a multiple of 64 columns, got 96}}
func.func private @f(!hopper.buffer<4x128x96xbf16>)

// -----

// expected-error @+1 {{a matrix holds bf16 or f16, got}}
func.func private @f(!hopper.matrix<64x64x128xf32>)

// -----

// expected-error @+1 {{a matrix is rows x columns x rows of its buffer, got <64, 64>}}
func.func private @f(!hopper.matrix<64x64xbf16>)

// -----

// expected-error @+1 {{a matrix has a multiple of 8 rows, no more than the 64 of its buffer, got 128}}
func.func private @f(!hopper.matrix<128x64x64xbf16>)

// -----

// expected-error @+1 {{sums are f32, got}}
func.func private @f(!hopper.flight<64x128xbf16>)

// -----

// expected-error @+1 {{an accumulator has 64 rows and a multiple of 8 columns up to 256, got <128, 128>}}
func.func private @f(!hopper.flight<128x128xf32>)

// -----

// expected-error @+1 {{there is at least one barrier, got 0}}
func.func private @f(!hopper.barriers<0>)

// -----

// expected-error @+1 {{grid has 5 dims, 1 to 4 are possible}}
hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, s, l, n, c)> traversal [0, 1, 2, 3, 4] descending [] group 1 {
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

// expected-error @+1 {{traversal names each of the 2 grid dims once, got [0, 0]}}
hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 0] descending [] group 1 {
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

// expected-error @+1 {{descending names grid dim 2, the grid has 2}}
hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [2] group 1 {
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

// expected-error @+1 {{group is 4 on a grid of 1 dims; a group is at least 1, and more needs two dims}}
hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t)> traversal [0] descending [] group 4 {
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

// expected-error @+1 {{argument 0 must be a view}}
hopper.kernel @k(%a: i32) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

// expected-error @+1 {{body must end with hopper.roles}}
hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c = arith.constant 0 : i32
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
// expected-error @+1 {{has 1 regions, 2 numbers of warpgroups, 1 of registers and 1 truth values; give one of each per role}}
  hopper.roles [1, 2] [24] [true] {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
// expected-error @+1 {{a role has 1 to 8 warpgroups, got 9}}
  hopper.roles [9] [24] [false] {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
// expected-error @+1 {{a role has a multiple of 8 registers per thread from 24 to 240, got 30}}
  hopper.roles [1] [30] [false] {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
// expected-error @+1 {{roles take 92160 registers, a multiprocessor has 65536}}
  hopper.roles [3] [240] [false] {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
// expected-error @+1 {{a role must end with hopper.yield}}
  "hopper.roles"() <{warpgroups = array<i64: 1>, registers = array<i64: 24>, single = array<i1: false>}> ({
    %c = arith.constant 0 : i32
  }) : () -> ()
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  hopper.roles [1, 1] [24, 240] [true, false] {
    // expected-error @+1 {{asks for grid dim 2, the grid of @k has 2}}
    %i = hopper.id 2
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

func.func @f() {
// expected-error @+1 {{must be inside a hopper.kernel}}
  %i = hopper.id 0
  return
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  // expected-error @+1 {{must be inside a role}}
  %w = hopper.warpgroup
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  hopper.roles [1, 1] [24, 240] [true, false] {
    // expected-error @+1 {{belongs into a role of whole warpgroups, role 0 is one of a single thread}}
    %w = hopper.warpgroup
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    // expected-error @+1 {{belongs into a role of a single thread, role 1 is one of whole warpgroups}}
    hopper.expect %b[%c0] bytes 16 : !hopper.barriers<1>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    // expected-error @+1 {{counts whole warps, 32 to 1024 threads, got 100}}
    hopper.sync %c0 threads 100
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    // expected-error @+1 {{counts whole warps, 32 to 1024 threads, got 2048}}
    hopper.signal %c0 threads 2048
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  // expected-error @+1 {{map holds 'f16', the view 'bf16'}}
  %m = hopper.tensor_map %a : !tile.view<?x128xbf16> -> !hopper.map<128x64xf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  // expected-error @+1 {{box has 3 dims, the view 2}}
  %m = hopper.tensor_map %a : !tile.view<?x128xbf16> -> !hopper.map<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x100xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  // expected-error @+1 {{view has a stride of 100 elements; the copy engine needs multiples of 16 bytes}}
  %m = hopper.tensor_map %a : !tile.view<?x100xbf16> -> !hopper.map<128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %i = arith.constant 0 : index
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %m = hopper.tensor_map %a : !tile.view<?x128xbf16> -> !hopper.map<128x64xbf16>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    // expected-error @+1 {{has 1 indices, the map 2 dims}}
    hopper.tensor_load %m[%i] dims [0, 1] to %r[%c0] signals %b[%c0] : !hopper.map<128x64xbf16>, !hopper.buffer<1x128x64xbf16>, !hopper.barriers<1>
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %i = arith.constant 0 : index
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %m = hopper.tensor_map %a : !tile.view<?x128xbf16> -> !hopper.map<128x64xbf16>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    // expected-error @+1 {{reads rows along a dim and columns along the last of 2, got dims [1, 0]}}
    hopper.tensor_load %m[%i, %i] dims [1, 0] to %r[%c0] signals %b[%c0] : !hopper.map<128x64xbf16>, !hopper.buffer<1x128x64xbf16>, !hopper.barriers<1>
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %i = arith.constant 0 : index
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %m = hopper.tensor_map %a : !tile.view<?x128xbf16> -> !hopper.map<128x64xbf16>
  %r = hopper.allocate : !hopper.buffer<1x64x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    // expected-error @+1 {{box has 128 elements along dim 0, a panel of '!hopper.buffer<1x64x64xbf16>' needs 64}}
    hopper.tensor_load %m[%i, %i] dims [0, 1] to %r[%c0] signals %b[%c0] : !hopper.map<128x64xbf16>, !hopper.buffer<1x64x64xbf16>, !hopper.barriers<1>
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %i = arith.constant 0 : index
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %m = hopper.tensor_map %a : !tile.view<?x128xbf16> -> !hopper.map<128x64xbf16>
  %r = hopper.allocate : !hopper.buffer<1x128x64xf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    // expected-error @+1 {{map holds 'bf16', the buffer 'f16'}}
    hopper.tensor_load %m[%i, %i] dims [0, 1] to %r[%c0] signals %b[%c0] : !hopper.map<128x64xbf16>, !hopper.buffer<1x128x64xf16>, !hopper.barriers<1>
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %i = arith.constant 0 : index
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %m = hopper.tensor_map %a : !tile.view<?x128xbf16> -> !hopper.map<128x64xbf16>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    // expected-error @+1 {{belongs into a role of a single thread, role 1 is one of whole warpgroups}}
    hopper.tensor_load %m[%i, %i] dims [0, 1] to %r[%c0] signals %b[%c0] : !hopper.map<128x64xbf16>, !hopper.buffer<1x128x64xbf16>, !hopper.barriers<1>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    // expected-error @+1 {{belongs into a role of whole warpgroups, role 0 is one of a single thread}}
    hopper.clear_rows %r[%c0] from %c0 : !hopper.buffer<1x128x64xbf16>
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  hopper.roles [1, 1] [24, 240] [true, false] {
    // expected-error @+1 {{belongs into a role of whole warpgroups, role 0 is one of a single thread}}
    hopper.arrive %b[%c0] : !hopper.barriers<1>
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    // expected-error @+1 {{takes all columns of '!hopper.buffer<1x128x64xbf16>', got '!hopper.matrix<64x128x128xbf16>'}}
    %s = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<64x128x128xbf16>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    // expected-error @+1 {{takes whole panels of '!hopper.buffer<1x128x64xbf16>', got '!hopper.matrix<64x128x128xbf16>'}}
    %s = hopper.submatrix %r[%c0] row %c0 column %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<64x128x128xbf16>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    %y = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<128x64x128xbf16>
    %x = arith.constant dense<0.0> : tensor<64x64xbf16>
    // expected-error @+1 {{left operand is in registers and cannot be read transposed}}
    %p = hopper.product %x, %y {transpose_a, transpose_b} : tensor<64x64xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x128xf32>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    %y = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<128x64x128xbf16>
    %x = arith.constant dense<0.0> : tensor<64xbf16>
    // expected-error @+1 {{left operand must be a matrix}}
    %p = hopper.product %x, %y {transpose_b} : tensor<64xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x128xf32>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    %y = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<128x64x128xbf16>
    %x = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<128x64x128xbf16>
    // expected-error @+1 {{left operand has 128 rows, a warpgroup multiplies 64}}
    %p = hopper.product %x, %y {transpose_b} : !hopper.matrix<128x64x128xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x128xf32>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    %y = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<128x64x128xbf16>
    %x = arith.constant dense<0.0> : tensor<64x64xf16>
    // expected-error @+1 {{operands must have one type, got 'f16' and 'bf16'}}
    %p = hopper.product %x, %y {transpose_b} : tensor<64x64xf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x128xf32>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    %y = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<128x64x128xbf16>
    %x = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<64x64x128xbf16>
    // expected-error @+1 {{left operand has depth 64, right 128; both are one multiple of 16}}
    %p = hopper.product %x, %y : !hopper.matrix<64x64x128xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x64xf32>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    %y = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<128x64x128xbf16>
    %x = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<64x64x128xbf16>
    // expected-error @+1 {{right operand has 128 columns, the result 64}}
    %p = hopper.product %x, %y {transpose_b} : !hopper.matrix<64x64x128xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x64xf32>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    %y = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<128x64x128xbf16>
    %x = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<64x64x128xbf16>
    %acc = arith.constant dense<0> : tensor<64x128xi32>
    // expected-error @+1 {{accumulator is 'tensor<64x128xi32>'}}
    %p = hopper.product %x, %y plus %acc : tensor<64x128xi32> {transpose_b} : !hopper.matrix<64x64x128xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x128xf32>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    %y = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<128x64x128xbf16>
    %x = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<64x64x128xbf16>
    %acc = arith.constant dense<0.0> : tensor<64x64xf32>
    // expected-error @+1 {{accumulator is 'tensor<64x64xf32>'}}
    %p = hopper.product %x, %y plus %acc : tensor<64x64xf32> {transpose_b} : !hopper.matrix<64x64x128xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x128xf32>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %b = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  %r = hopper.allocate : !hopper.buffer<1x128x64xbf16>
  hopper.roles [1, 1] [24, 240] [true, false] {
    %y = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<128x64x128xbf16>
    %x = hopper.submatrix %r[%c0] row %c0 : !hopper.buffer<1x128x64xbf16> -> !hopper.matrix<64x64x128xbf16>
    // expected-error @+1 {{belongs into a role of whole warpgroups, role 0 is one of a single thread}}
    %p = hopper.product %x, %y {transpose_b} : !hopper.matrix<64x64x128xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x128xf32>
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    %z = arith.constant dense<0.0> : tensor<64x128xf32>
    // expected-error @+1 {{matches '!hopper.flight<64x64xf32>' with 'tensor<64x128xf32>'}}
    %f = hopper.accumulator %z : tensor<64x128xf32> -> !hopper.flight<64x64xf32>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    %z = arith.constant dense<0.0> : tensor<64x128xf32>
    %f = hopper.accumulator %z : tensor<64x128xf32> -> !hopper.flight<64x128xf32>
    // expected-error @+1 {{matches '!hopper.flight<64x128xf32>' with 'tensor<64x64xf32>'}}
    %t = hopper.product_wait %f pending 0 : !hopper.flight<64x128xf32> -> tensor<64x64xf32>
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  hopper.roles [1, 1] [24, 240] [true, false] {
    hopper.yield
  }, {
    %z = arith.constant dense<0.0> : tensor<64x128xf32>
    %f = hopper.accumulator %z : tensor<64x128xf32> -> !hopper.flight<64x128xf32>
    // expected-error @+1 {{has 1 operands and 0 results}}
    "hopper.product_wait"(%f) <{pending = 0 : i64}> : (!hopper.flight<64x128xf32>) -> ()
    hopper.yield
  }
}

// -----

hopper.kernel @k(%a: !tile.view<?x128xbf16>) grid affine_map<()[t, s, l, n, c, d] -> (t, 2)> traversal [0, 1] descending [] group 1 {
  hopper.roles [1, 1] [24, 240] [true, false] {
    // expected-error @+1 {{belongs into a role of whole warpgroups, role 0 is one of a single thread}}
    hopper.product_wait pending 0
    hopper.yield
  }, {
    hopper.yield
  }
}

// -----

tile.program @p(%x: !tile.view<?x64xf32>) grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
  tile.return
}
// expected-error @+1 {{has an unknown attribute 'hopper.order'}}
tile.schedule @p target("sm_90a") roles {} ops {} {hopper.order = 1}

// -----

tile.program @p(%x: !tile.view<?x64xf32>) grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
  tile.return
}
// expected-error @+1 {{'hopper.group' is a number on a tile.schedule}}
tile.schedule @p target("sm_90a") roles {} ops {} {hopper.group = "many"}

// -----

tile.program @p(%x: !tile.view<?x64xf32>) grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
  tile.return
}
// expected-error @+1 {{'hopper.traversal' is an array of i64 on a tile.schedule}}
tile.schedule @p target("sm_90a") roles {} ops {} {hopper.traversal = 1}

// -----

tile.program @p(%x: !tile.view<?x64xf32>) grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
  tile.return
}
// expected-error @+1 {{'hopper.persistent' is a unit attribute on a tile.schedule}}
tile.schedule @p target("sm_90a") roles {} ops {} {hopper.persistent = 1}
