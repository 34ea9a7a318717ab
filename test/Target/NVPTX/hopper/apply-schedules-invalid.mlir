// RUN: hybrid-opt %s -hybrid-hopper-apply-schedules -split-input-file -verify-diagnostics

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
// expected-error @+1 {{has no load with the barrier 'mbarrier'; sm_90a kernels load their operands so}}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load"}, sum = {role = "multiply"}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
// expected-error @+1 {{has 3 roles; a kernel has one that loads and one that multiplies}}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 168}, more = {warpgroups = 1, registers = 24}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply"}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
// expected-error @+1 {{op 'sum' has the role "load"; role "load" is that of the loads}}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "load"}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
// expected-error @+1 {{role "load" has 2 warpgroups; one thread issues all copies}}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 2, registers = 24}, multiply = {warpgroups = 2, registers = 168}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply"}}

// -----

!matrix = !tile.view<?x128xbf16>
// expected-error @+1 {{has an ordered grid dim; a schedule for sm_90a needs parallel ones}}
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [ordered] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply"}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    // expected-error @+1 {{has 128 rows, the 3 warpgroups of role "multiply" take 192}}
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 3, registers = 160}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply"}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %xt = tile.load %a[%k, %c0] dims [0, 1] : !matrix -> tensor<64x128xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    // expected-error @+1 {{a product of warpgroups has a left operand of bf16 or f16, in rows where it is not loaded by role "load", and f32 sums, got 'tensor<64x128xbf16>' transposed}}
    %next = tile.dot %xt, %w, %acc {transpose_a, transpose_b, tile.name = "sum"} : tensor<64x128xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply"}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    // expected-error @+1 {{is of another stage than another product of the same operand; a copy is kept for one stage}}
    %once = tile.dot %x, %w, %acc {transpose_b, tile.name = "first"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    %next = tile.dot %x, %w, %once {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, first = {role = "multiply", stage = 0}, sum = {role = "multiply", stage = 1}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = arith.constant dense<0.0> : tensor<128x64xbf16>
    // expected-error @+1 {{has a right operand that no load of role "load" brings into shared memory}}
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply"}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    // expected-error @+1 {{has 2 buffers; products that wait for 1 need at least 3}}
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 2, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply", wait = 1}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    // expected-error @+1 {{uses a tile that is not in registers; loads of role "load" are operands of products alone}}
    %wide = arith.extf %x : tensor<128x64xbf16> to tensor<128x64xf32>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply"}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  // expected-error @+1 {{mixes rows or is unknown to a schedule for sm_90a; leave the program to the generic path}}
  %t = tile.reduce sum %sum dim 0 : tensor<128x128xf32>
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply"}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  // expected-error @+1 {{makes 'tensor<64x64xf32>'; tiles that a schedule for sm_90a keeps in registers have 128 rows or one}}
  %t = arith.constant dense<1.0> : tensor<64x64xf32>
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply"}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  // expected-error @+1 {{must be a row, or the same number everywhere}}
  %t = arith.constant dense<"0x01000000000000000000000000000000"> : tensor<128xi1>
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply"}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    // expected-error @+1 {{limits columns by something else than the view's size, which the copy engine does not know}}
    %x = tile.load %a[%row, %k] dims [0, 1] limit(%c128, %c64) {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply"}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    // expected-error @+1 {{has stage 2; loops for sm_90a have stages 0 and 1}}
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply", stage = 2}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %new = tile.dot %x, %w, %zero {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    // expected-error @+1 {{is of stage 0 and uses 'tile.dot' of stage 1 of its own iteration}}
    %next = arith.addf %acc, %new {tile.name = "add"} : tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply", stage = 1}, add = {role = "multiply", stage = 0}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %new = tile.dot %x, %w, %zero {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    // expected-error @+1 {{is of stage 1 and reads what the iteration before made in stage 0, which is gone; give it stage 0}}
    %old = arith.negf %acc {tile.name = "old"} : tensor<128x128xf32>
    %next = arith.addf %acc, %new {tile.name = "add"} : tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply"}, old = {role = "multiply", stage = 1}, add = {role = "multiply", stage = 0}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %new = tile.dot %x, %w, %zero {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    // expected-error @+1 {{is issued before 'arith.addf' gives what it needs; issue it later}}
    %kept = arith.negf %acc {tile.name = "kept"} : tensor<128x128xf32>
    %next = arith.addf %kept, %new {tile.name = "add"} : tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply"}, kept = {role = "multiply", stage = 0, issue = 0}, add = {role = "multiply", stage = 1, issue = 1}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    // expected-error @+1 {{is in a loop whose products are in flight or in stages; put it behind the loop}}
    tile.store %zero, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply", wait = 1}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    // expected-error @+1 {{is in a loop whose products are in flight or in stages; put it behind the loop}}
    tile.store %zero, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply", stage = 1}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    // expected-error @+1 {{reads a view that the program writes; bulk copies are not ordered with stores}}
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  %half = arith.constant dense<0.0> : tensor<128x128xbf16>
  tile.store %half, %a[%row, %c0] dims [0, 1] : tensor<128x128xbf16>, !matrix
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply", wait = 1}}

// -----

!matrix = !tile.view<?x128xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    // expected-error @+1 {{takes turns, which begin anew with every point; leave out hopper.persistent}}
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"}, load_b = {role = "load", buffers = 3, barrier = "mbarrier"}, sum = {role = "multiply", barrier = "turn"}}
    {hopper.persistent}


// -----

!matrix = !tile.view<?x64xbf16>
tile.program @p(%a: !matrix, %b: !tile.view<128x64xbf16>, %c: !tile.view<?x128xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  // expected-error @+1 {{is not in one loop of the program with the other loads; leave out hopper.persistent}}
  %x = tile.load %a[%row, %c0] dims [0, 1] {tile.name = "load_a"} : !matrix -> tensor<128x64xbf16>
  %w = tile.load %b[%c0, %c0] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x64xbf16> -> tensor<128x64xbf16>
  %sum = tile.dot %x, %w, %zero {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<128x128xf32>, !tile.view<?x128xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", barrier = "mbarrier"}, load_b = {role = "load", barrier = "mbarrier"}, sum = {role = "multiply"}}
    {hopper.persistent}

// -----

!rows = !tile.view<?x64xbf16>
tile.program @p(%q: !rows, %k: !rows, %o: !tile.view<?x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %queries = tile.load %q[%row, %c0] dims [0, 1] {tile.name = "load_q"} : !rows -> tensor<128x64xbf16>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %sum, %last = scf.for %at = %c0 to %c128 step %c64 iter_args(%acc = %zero, %old = %zero) -> (tensor<128x64xf32>, tensor<128x64xf32>) {
    %keys = tile.load %k[%at, %c0] dims [0, 1] {tile.name = "load_k"} : !rows -> tensor<64x64xbf16>
    // expected-error @+1 {{is waited for in its own iteration; leave out its 'wait'}}
    %next = tile.dot %queries, %keys, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    %s = tile.dot %queries, %keys, %old {tile.name = "scores"} : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    scf.yield %next, %s : tensor<128x64xf32>, tensor<128x64xf32>
  }
  %both = arith.addf %sum, %last : tensor<128x64xf32>
  tile.store %both, %o[%row, %c0] dims [0, 1] : tensor<128x64xf32>, !tile.view<?x64xf32>
  tile.return
}
tile.schedule @p target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_q = {role = "load", barrier = "mbarrier"}, load_k = {role = "load", buffers = 2, barrier = "mbarrier"}, scores = {role = "multiply"}, sum = {role = "multiply", wait = 1}}
