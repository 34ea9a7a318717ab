// RUN: hybrid-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{a view has 1 to 4 dims, got 5; merge dims or index the outer ones before}}
func.func private @f(!tile.view<2x2x2x2x2xf32>)

// -----

// expected-error @+1 {{a view holds floats or i32, got 'i64'}}
func.func private @f(!tile.view<2xi64>)

// -----

// expected-error @+1 {{a view has one stride per dim, got 1 strides for 2 dims}}
func.func private @f(!tile.view<2x4xf32, strides = [1]>)

// -----

// expected-error @+1 {{sizes and strides of a view are not negative, got size 2 and stride -4}}
func.func private @f(!tile.view<2x4xf32, strides = [-4, 1]>)

// -----

// expected-error @+1 {{the last stride of a view is 1, got 2}}
func.func private @f(!tile.view<2x4xf32, strides = [8, 2]>)

// -----

// expected-error @+1 {{the last stride of a view is 1, got ?}}
func.func private @f(!tile.view<2x4xf32, strides = [8, ?]>)

// -----

// expected-error @+1 {{'func.func' op has an unknown attribute 'tile.stage'; the tile dialect gives other ops only 'tile.name'}}
func.func private @f() attributes {tile.stage = 1}

// -----

// expected-error @+1 {{'tile.caution' is a string on a tile.program, got "x" on 'func.func'}}
func.func private @f() attributes {tile.caution = "x"}

// -----

// expected-error @+1 {{'tile.overlap' is an array<i64> of numbers of a tile.program's views, got array<i64: 1> on 'tile.program'}}
tile.program @p(%y: !tile.view<4xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel]
    attributes {tile.overlap = array<i64: 1>} {
  tile.return
}

// -----

// expected-error @+1 {{'tile.warps' is an i64 from 1 to 64 on a tile.program, got 65 : i64 on 'tile.program'}}
tile.program @p(%y: !tile.view<4xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel]
    attributes {tile.warps = 65 : i64} {
  tile.return
}

// -----

// expected-error @+1 {{'tile.name' names ops of a tile.program; this op is outside of one}}
func.func private @f() attributes {tile.name = "x"}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  // expected-error @+1 {{'tile.name' must be a string, got 3 : i64}}
  %c = arith.constant {tile.name = 3} 0 : index
  tile.return
}

// -----

// expected-error @+1 {{grid must be a map of the 6 symbols [tokens, segments, longest, slots, context, depth] and no dims, got 1 symbols and 0 dims}}
tile.program @p() grid affine_map<()[a] -> (a)> order [parallel] {
  tile.return
}

// -----

// expected-error @+1 {{grid has 5 dims, at most 4 are possible; merge dims and take them apart with arith.divui}}
tile.program @p() grid affine_map<()[a, b, c, d, e, f] -> (a, b, c, d, e)>
    order [parallel, parallel, parallel, parallel, parallel] {
  tile.return
}

// -----

// GEN-24: a size of the grid that is known and negative.
// expected-error @+1 {{grid dim 1 is -1; write a number from 0 on, or an expression of the symbols}}
tile.program @p() grid affine_map<()[a, b, c, d, e, f] -> (a, -1)> order [parallel, parallel] {
  tile.return
}

// -----

// expected-error @+1 {{grid has 2 dims but order has 1 words; give one word per dim}}
tile.program @p() grid affine_map<()[a, b, c, d, e, f] -> (a, b)> order [parallel] {
  tile.return
}

// -----

// expected-error @+1 {{order of a grid dim is 'parallel' or 'ordered', got 'sequential'}}
tile.program @p() grid affine_map<()[a, b, c, d, e, f] -> (a)> order [sequential] {
  tile.return
}

// -----

// expected-error @+1 {{argument 0 must be a view, got 'index'}}
tile.program @p(%n: index) grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  tile.return
}

// -----

// expected-error @+1 {{body must end with tile.return}}
tile.program @p() grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c = arith.constant 0 : index
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  // expected-error @+1 {{'tensor.empty' op is not allowed in a tile.program; use tile, scf.for, scf.if, tensor.extract and the arith and math ops that every target knows}}
  %e = tensor.empty() : tensor<4xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<4xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  // expected-note @+1 {{the other op is here}}
  %a = tile.load %x[%c0] dims [0] {tile.name = "a"} : !tile.view<4xf32> -> tensor<4xf32>
  // expected-error @+1 {{has the name 'a' of another op; names are unique in a program}}
  %b = arith.addf %a, %a {tile.name = "a"} : tensor<4xf32>
  tile.return
}

// -----

func.func @f() {
  // expected-error @+1 {{must be inside a tile.program}}
  %0 = tile.id 0
  return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  // expected-error @+1 {{asks for grid dim 0, but the grid of @p has 0}}
  %i = tile.id 0
  tile.return
}

// -----

func.func @f() {
  // expected-error @+1 {{expects parent op 'tile.program'}}
  tile.return
}

// -----

// expected-error @+1 {{there is no tile.program @q}}
tile.schedule @q target("sm_90a") roles {} ops {}

// -----

// expected-note @+1 {{the program is here}}
tile.program @p(%x: !tile.view<4xf32>) grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0] dims [0] {tile.name = "a"} : !tile.view<4xf32> -> tensor<4xf32>
  tile.return
}
// expected-error @+1 {{no op of @p has the name 'b'; give one a tile.name}}
tile.schedule @p target("sm_90a") roles {all = {warpgroups = 1, registers = 64}} ops {b = {role = "all"}}

// -----

tile.program @p(%x: !tile.view<4xf32>) grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0] dims [0] {tile.name = "a"} : !tile.view<4xf32> -> tensor<4xf32>
  tile.return
}
// expected-error @+1 {{role 'all' needs a dictionary, got 1 : i64}}
tile.schedule @p target("sm_90a") roles {all = 1} ops {}

// -----

tile.program @p(%x: !tile.view<4xf32>) grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0] dims [0] {tile.name = "a"} : !tile.view<4xf32> -> tensor<4xf32>
  tile.return
}
// expected-error @+1 {{role 'all' has the unknown key 'warps'; keys are warpgroups, registers}}
tile.schedule @p target("sm_90a") roles {all = {warps = 4}} ops {}

// -----

tile.program @p(%x: !tile.view<4xf32>) grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0] dims [0] {tile.name = "a"} : !tile.view<4xf32> -> tensor<4xf32>
  tile.return
}
// expected-error @+1 {{op 'a' has the unknown key 'depth'; keys are role, stage, buffers, issue, barrier, operand, wait}}
tile.schedule @p target("sm_90a") roles {all = {warpgroups = 1, registers = 64}} ops {a = {role = "all", depth = 2}}

// -----

tile.program @p(%x: !tile.view<4xf32>) grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0] dims [0] {tile.name = "a"} : !tile.view<4xf32> -> tensor<4xf32>
  tile.return
}
// expected-error @+1 {{op 'a' needs a non-negative integer for 'stage', got -1 : i64}}
tile.schedule @p target("sm_90a") roles {all = {warpgroups = 1, registers = 64}} ops {a = {role = "all", stage = -1}}

// -----

tile.program @p(%x: !tile.view<4xf32>) grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0] dims [0] {tile.name = "a"} : !tile.view<4xf32> -> tensor<4xf32>
  tile.return
}
// expected-error @+1 {{op 'a' needs a string for 'barrier', got 1 : i64}}
tile.schedule @p target("sm_90a") roles {all = {warpgroups = 1, registers = 64}} ops {a = {role = "all", barrier = 1}}

// -----

tile.program @p(%x: !tile.view<4xf32>) grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0] dims [0] {tile.name = "a"} : !tile.view<4xf32> -> tensor<4xf32>
  tile.return
}
// expected-error @+1 {{op 'a' has no role}}
tile.schedule @p target("sm_90a") roles {all = {warpgroups = 1, registers = 64}} ops {a = {stage = 1}}

// -----

tile.program @p(%x: !tile.view<4xf32>) grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0] dims [0] {tile.name = "a"} : !tile.view<4xf32> -> tensor<4xf32>
  tile.return
}
// expected-error @+1 {{op 'a' has the role "load", which is not declared in roles}}
tile.schedule @p target("sm_90a") roles {all = {warpgroups = 1, registers = 64}} ops {a = {role = "load"}}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{needs one index per view dim: the view has 3 dims, got 2 indices}}
  %t = tile.load %x[%c0, %c0] dims [0, 2] limit(%c0) : !tile.view<?x8x64xf32> -> tensor<4x64xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{tile holds 'i32' but the view holds 'f32'}}
  %t = tile.load %x[%c0, %c0, %c0] dims [0, 2] limit(%c0) : !tile.view<?x8x64xf32> -> tensor<4x64xi32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{tile has 2 dims but 'dims' names 1; name one view dim per tile dim}}
  %t = tile.load %x[%c0, %c0, %c0] dims [0] limit(%c0) : !tile.view<?x8x64xf32> -> tensor<4x64xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'dims' names view dim 3, but the view has 3 dims}}
  %t = tile.load %x[%c0, %c0, %c0] dims [0, 3] limit(%c0) : !tile.view<?x8x64xf32> -> tensor<4x64xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{'dims' must ascend, got 2 before 0; transpose the tile instead}}
  %t = tile.load %x[%c0, %c0, %c0] dims [2, 0] : !tile.view<?x8x64xf32> -> tensor<64x4xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{tile dim 1 has size 128 but view dim 2 has size 64; give a limit or a smaller tile}}
  %t = tile.load %x[%c0, %c0, %c0] dims [0, 2] limit(%c0) : !tile.view<?x8x64xf32> -> tensor<4x128xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{has 3 limits for a tile of 2 dims; there is at most one per tile dim}}
  %t = tile.load %x[%c0, %c0, %c0] dims [0, 2] limit(%c0, %c0, %c0) : !tile.view<?x8x64xf32> -> tensor<4x64xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{must be tile of static shape, rank 1 to 3, of floats, i32 or i1}}
  %t = tile.load %x[%c0, %c0, %c0] dims [0, 2] limit(%c0) : !tile.view<?x8x64xf32> -> tensor<?x64xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<0.0> : tensor<4x128xf32>
  // expected-error @+1 {{tile dim 1 has size 128 but view dim 2 has size 64}}
  tile.store %t, %x[%c0, %c0, %c0] dims [0, 2] limit(%c0) : tensor<4x128xf32>, !tile.view<?x8x64xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<0.0> : tensor<4x64xf32>
  // expected-error @+1 {{needs one index per view dim: the view has 3 dims, got 1 indices}}
  tile.accumulate %t, %x[%c0] dims [0, 2] limit(%c0) : tensor<4x64xf32>, !tile.view<?x8x64xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %r = tile.iota dim 0 : tensor<4xi32>
  %m = arith.constant dense<true> : tensor<4xi1>
  // expected-error @+1 {{tile dim 1 has size 128 but view dim 2 has size 64}}
  %t = tile.load_rows %x[%c0, %c0, %c0] rows(%r) mask(%m) dims [0, 2] : !tile.view<?x8x64xf32> -> tensor<4x128xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  // expected-note @+1 {{prior use here}}
  %r = tile.iota dim 0 : tensor<8xi32>
  %m = arith.constant dense<true> : tensor<4xi1>
  // expected-error @+1 {{use of value '%r' expects different type than prior uses: 'tensor<4xi32>' vs 'tensor<8xi32>'}}
  %t = tile.load_rows %x[%c0, %c0, %c0] rows(%r) mask(%m) dims [0, 2] : !tile.view<?x8x64xf32> -> tensor<4x64xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %t = arith.constant dense<0.0> : tensor<4x64xf32>
  %r = tile.iota dim 0 : tensor<4xi32>
  %m = arith.constant dense<true> : tensor<4xi1>
  // expected-error @+1 {{'dims' must ascend, got 2 before 2; transpose the tile instead}}
  tile.store_rows %t, %x[%c0, %c0, %c0] rows(%r) mask(%m) dims [2, 2] : tensor<4x64xf32>, !tile.view<?x8x64xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{needs one index per view dim: the view has 3 dims, got 1 indices}}
  %t = tile.load_scalar %x[%c0] : !tile.view<?x8x64xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  // expected-error @+1 {{needs one index per view dim: the view has 3 dims, got 1 indices}}
  tile.store_scalar %f, %x[%c0] : !tile.view<?x8x64xf32>
  tile.return
}

// -----

tile.program @p(%x: !tile.view<?x8x64xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{asks for dim 3 of a view with 3 dims}}
  %t = tile.dim %x, 3 : !tile.view<?x8x64xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x8xf32>
  %c = arith.constant dense<0.0> : tensor<4x4xf32>
  // expected-error @+1 {{sums over 8 columns of the left and 4 rows of the right operand; they must be equal}}
  %d = tile.dot %a, %a, %c : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x8xf32>
  %c = arith.constant dense<0.0> : tensor<4x2xf32>
  // expected-error @+1 {{gives 4x4 but the accumulator is 4x2}}
  %d = tile.dot %a, %a, %c {transpose_b} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x2xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x4xf32>
  %b = arith.constant dense<0.0> : tensor<4x4xbf16>
  // expected-error @+1 {{multiplies 'f32' by 'bf16'; convert one of them first}}
  %d = tile.dot %a, %b, %a : tensor<4x4xf32>, tensor<4x4xbf16> -> tensor<4x4xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x4xf32>
  %c = arith.constant dense<0.0> : tensor<4x4xbf16>
  // expected-error @+1 {{accumulates 'f32' in the narrower 'bf16'}}
  %d = tile.dot %a, %a, %c : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xbf16>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x8xf32>
  // expected-error @+1 {{dim 2 is outside of 'tensor<4x8xf32>', which has 2 dims}}
  %d = tile.reduce sum %a dim 2 : tensor<4x8xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x8xf32>
  // expected-error @+1 {{dim 2 is outside of 'tensor<4x8xf32>', which has 2 dims}}
  %d = tile.prefix_sum %a dim 2 : tensor<4x8xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x8xf32>
  // expected-error @+1 {{needs a square matrix, got 4x8}}
  %d = tile.unit_lower_inverse %a : tensor<4x8xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  // expected-error @+1 {{gives i32, not 'f32'}}
  %d = tile.iota dim 0 : tensor<4xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  // expected-error @+1 {{dim 1 is outside of 'tensor<4xi32>', which has 1 dims}}
  %d = tile.iota dim 1 : tensor<4xi32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x1xf32>
  // expected-error @+1 {{changes the element type from 'f32' to 'i32'}}
  %d = tile.broadcast %a : tensor<4x1xf32> to tensor<4x8xi32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4xf32>
  // expected-error @+1 {{changes the rank from 1 to 2; use tile.reshape first}}
  %d = tile.broadcast %a : tensor<4xf32> to tensor<4x8xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x2xf32>
  // expected-error @+1 {{stretches dim 1 from 2 to 8; only size 1 stretches}}
  %d = tile.broadcast %a : tensor<4x2xf32> to tensor<4x8xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x2xf32>
  // expected-error @+1 {{changes the element type from 'f32' to 'bf16'}}
  %d = tile.reshape %a : tensor<4x2xf32> to tensor<8xbf16>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x2xf32>
  // expected-error @+1 {{changes the number of elements from 8 to 4}}
  %d = tile.reshape %a : tensor<4x2xf32> to tensor<4xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x2xf32>
  // expected-error @+1 {{a permutation of 2 entries does not order the 2 dims of 'tensor<4x2xf32>'}}
  %d = tile.transpose %a [0, 0] : tensor<4x2xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x2xf32>
  // expected-error @+1 {{dim 2 is outside of 'tensor<4x2xf32>', which has 2 dims}}
  %d = tile.slice %a dim 2 offset 0 size 1 : tensor<4x2xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x2xf32>
  // expected-error @+1 {{slice of 2 from 3 on ends behind dim 0, which has size 4}}
  %d = tile.slice %a dim 0 offset 3 size 2 : tensor<4x2xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x2xf32>
  %b = arith.constant dense<0.0> : tensor<5x2xf32>
  // expected-error @+1 {{cannot join 'tensor<4x2xf32>' and 'tensor<5x2xf32>' along dim 1; the other dims must be equal}}
  %d = tile.concat %a, %b dim 1 : tensor<4x2xf32>, tensor<5x2xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x2xf32>
  // expected-error @+1 {{dim 2 is outside of 'tensor<4x2xf32>', which has 2 dims}}
  %d = tile.concat %a dim 2 : tensor<4x2xf32>
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  // expected-error @+2 {{concat needs at least one tile}}
  // expected-error @+1 {{'tile.concat' op failed to infer returned types}}
  %d = "tile.concat"() <{dim = 0 : i64}> : () -> tensor<1xf32>
  tile.return
}

// -----

tile.program @word(%x: !tile.view<16x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> ()> order [] {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<16x64xf32> -> tensor<16x64xf32>
  // expected-error @+1 {{unknown word 'min' for reduce_kind; write one of sum, max}}
  %m = tile.reduce min %a dim 1 : tensor<16x64xf32>
  tile.return
}

// -----

tile.program @overflow()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<0.0> : tensor<4x2xf32>
  // expected-error @+1 {{slice of 1 from 9223372036854775807 on ends behind dim 0, which has size 4}}
  %d = tile.slice %a dim 0 offset 9223372036854775807 size 1 : tensor<4x2xf32>
  tile.return
}

// -----

// expected-error @+1 {{a view of more elements than a 64-bit number counts cannot be addressed}}
tile.program @overflow(%x: !tile.view<?x4294967296x4294967296xf32>)
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  tile.return
}

// -----

tile.program @rank()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  // expected-error @+1 {{gives 'tensor<f32>'; values of a program are scalars and tiles of static shape, rank 1 to 3, of floats, i32 or i1}}
  %a = arith.constant dense<0.0> : tensor<f32>
  tile.return
}

// -----

tile.program @rank()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  // expected-error @+1 {{gives 'tensor<2x2x2x2xf32>'; values of a program are}}
  %a = arith.constant dense<0.0> : tensor<2x2x2x2xf32>
  tile.return
}

// -----

tile.program @empty()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  // expected-error @+1 {{gives 'tensor<0x4xf32>'; values of a program are}}
  %a = arith.constant dense<0.0> : tensor<0x4xf32>
  tile.return
}

// -----

tile.program @vector()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  // expected-error @+1 {{gives 'vector<4xf32>'; values of a program are}}
  %a = arith.constant dense<0.0> : vector<4xf32>
  tile.return
}

// -----

tile.program @element()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  // expected-error @+1 {{gives 'tensor<4xcomplex<f32>>'; values of a program are}}
  %a = arith.constant dense<(0.0, 1.0)> : tensor<4xcomplex<f32>>
  tile.return
}

// -----

tile.program @element()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  // expected-error @+1 {{gives 'tensor<4xindex>'; values of a program are}}
  %a = arith.constant dense<1> : tensor<4xindex>
  tile.return
}

// -----

tile.program @unknown()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<1.0> : tensor<4xf32>
  // expected-error @+1 {{'math.cbrt' op is not allowed in a tile.program; use tile, scf.for, scf.if, tensor.extract and the arith and math ops that every target knows}}
  %b = math.cbrt %a : tensor<4xf32>
  tile.return
}

// -----

tile.program @relaxed()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant dense<1.0> : tensor<4xf32>
  // expected-error @+1 {{has fast-math flags; the numbers of a program are those of its ops in their order}}
  %b = arith.addf %a, %a fastmath<fast> : tensor<4xf32>
  tile.return
}

// -----

tile.program @loop()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  // expected-error @+1 {{counts in 'i32'; loops of a program count in index}}
  scf.for %i = %c0 to %c4 step %c4 : i32 {
  }
  tile.return
}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  tile.return
}
// expected-error @+1 {{role 'all' has 0 warpgroups; a block has 1 to 8}}
tile.schedule @p target("sm_90a") roles {all = {registers = 64}} ops {}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  tile.return
}
// expected-error @+1 {{role 'all' has 100 registers per thread; their number is a multiple of 8 from 24 to 256}}
tile.schedule @p target("sm_90a") roles {all = {warpgroups = 1, registers = 100}} ops {}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  tile.return
}
// expected-error @+1 {{roles take 67584 registers of a block, a multiprocessor has 65536}}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 48}, work = {warpgroups = 2, registers = 240}} ops {}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  %a = arith.constant {tile.name = "a"} dense<1.0> : tensor<4xf32>
  tile.return
}
// expected-error @+1 {{op 'a' has "fence" for 'barrier'; write one of mbarrier, named, turn}}
tile.schedule @p target("sm_90a") roles {all = {warpgroups = 1, registers = 64}}
    ops {a = {role = "all", barrier = "fence"}}

// -----

tile.program @p()
    grid affine_map<()[a, b, c, d, e, f] -> ()> order [] {
  tile.return
}
// expected-note @+1 {{the other record is here}}
tile.schedule @p target("sm_90a") roles {all = {warpgroups = 1, registers = 64}} ops {}
tile.schedule @p target("sm_80") roles {all = {warpgroups = 1, registers = 64}} ops {}
// expected-error @+1 {{schedules @p for 'sm_90a' once more; a program has one record per target}}
tile.schedule @p target("sm_90a") roles {all = {warpgroups = 2, registers = 64}} ops {}
