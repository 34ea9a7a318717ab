// RUN: hybrid-opt %s -hybrid-hopper-apply-schedules -canonicalize -cse | FileCheck %s

// Two warpgroups take 64 rows each. The loader fills three copies in turn; the
// sum stays in flight: when a product starts, the one before may still run, and
// the one before that has released its copies.
// CHECK-LABEL: hopper.kernel @product
// CHECK-SAME: traversal [1, 0] descending [] group 4
// CHECK: %[[MAP:.*]] = hopper.tensor_map %{{.*}} : !tile.view<?x128xbf16> -> !hopper.map<128x64xbf16>
// CHECK: %[[A:.*]] = hopper.allocate : !hopper.buffer<3x128x64xbf16>
// CHECK: %[[FULL:.*]] = hopper.make_barriers arrivals 1
// CHECK: %[[EMPTY:.*]] = hopper.make_barriers arrivals 8
// CHECK: hopper.roles [1, 2] [24, 240] [true, false]
// CHECK: scf.for %[[K:.*]] =
// CHECK: %[[COPY:.*]] = arith.remui
// CHECK: %[[BEFORE:.*]] = arith.xori
// CHECK: hopper.wait %[[EMPTY]][%[[COPY]]] parity %[[BEFORE]]
// CHECK: hopper.expect %[[FULL]][%[[COPY]]] bytes 16384
// CHECK: hopper.tensor_load %[[MAP]][%{{.*}}, %[[K]]] dims [0, 1] to %[[A]][%[[COPY]]] signals %[[FULL]][%[[COPY]]]
// CHECK: hopper.yield
// CHECK: scf.for {{.*}} -> (!hopper.flight<64x128xf32>)
// CHECK: hopper.product_wait pending 1
// CHECK: scf.if
// CHECK: hopper.arrive %[[EMPTY]]
// CHECK: hopper.wait %[[FULL]]
// CHECK: hopper.submatrix %[[A]]{{.*}} -> !hopper.matrix<64x64x128xbf16>
// CHECK: hopper.product_fence
// CHECK: hopper.product {{.*}} plus %{{.*}} : !hopper.flight<64x128xf32> {transpose_b}
// CHECK: hopper.product_commit
// CHECK: scf.yield
// CHECK: hopper.product_wait %{{.*}} pending 0
// CHECK: tile.store %{{.*}} : tensor<64x128xbf16>, !tile.view<?x128xbf16>
!matrix = !tile.view<?x128xbf16>
tile.program @product(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !matrix)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128, 1)> order [parallel, parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %rows = tile.dim %c, 0 : !matrix
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !tile.view<?x128xbf16> -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  %y = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xbf16>
  tile.store %y, %c[%row, %c0] dims [0, 1] limit(%rows) : tensor<128x128xbf16>, !matrix
  tile.return
}
tile.schedule @product target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"},
         load_b = {role = "load", buffers = 3, barrier = "mbarrier"},
         sum = {role = "multiply", wait = 1}}
    {hopper.traversal = array<i64: 1, 0>, hopper.group = 4}

// The same, persistent: blocks take the points in turn, copies go on round from
// one point to the next, and those of the last products are released behind the
// loop.
// CHECK-LABEL: hopper.kernel @persistent
// CHECK: hopper.roles
// CHECK: %[[FIRST:.*]] = hopper.block
// CHECK: %[[TASKS:.*]] = hopper.tasks
// CHECK: %[[STEP:.*]] = hopper.blocks
// CHECK: scf.for %[[TASK:.*]] = %[[FIRST]] to %[[TASKS]] step %[[STEP]] iter_args(%[[PASSED:.*]] = %{{.*}}) -> (index)
// CHECK: hopper.id 0 of %[[TASK]]
// CHECK: scf.for
// CHECK: arith.addi %[[PASSED]]
// CHECK: hopper.tensor_load
// CHECK: %[[AFTER:.*]] = arith.addi %[[PASSED]]
// CHECK: scf.yield %[[AFTER]] : index
// CHECK: scf.for {{.*}} iter_args(%[[PASSED:.*]] = %{{.*}}) -> (index)
// CHECK: scf.for {{.*}} -> (!hopper.flight<64x128xf32>)
// CHECK: arith.cmpi sge, %{{.*}}, %[[PASSED]]
// CHECK: hopper.product_wait %{{.*}} pending 0
// CHECK: hopper.arrive
// CHECK: hopper.arrive
// CHECK: hopper.arrive
// CHECK: hopper.arrive
// CHECK: tile.store
// CHECK: scf.yield %{{.*}} : index
tile.program @persistent(%a: !matrix, %b: !tile.view<128x128xbf16>, %c: !matrix)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128, 1)> order [parallel, parallel] {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %rows = tile.dim %c, 0 : !matrix
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> tensor<128x128xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !tile.view<?x128xbf16> -> tensor<128x64xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] {tile.name = "load_b"} : !tile.view<128x128xbf16> -> tensor<128x64xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b, tile.name = "sum"} : tensor<128x64xbf16>, tensor<128x64xbf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  %y = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xbf16>
  tile.store %y, %c[%row, %c0] dims [0, 1] limit(%rows) : tensor<128x128xbf16>, !matrix
  tile.return
}
tile.schedule @persistent target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_a = {role = "load", buffers = 3, barrier = "mbarrier"},
         load_b = {role = "load", buffers = 3, barrier = "mbarrier"},
         sum = {role = "multiply", wait = 1}}
    {hopper.traversal = array<i64: 1, 0>, hopper.group = 4, hopper.persistent}

// A loop in stages, with turns: the next scores are issued before the values of
// the last ones, and while those run, what follows the scores does too. Keys of
// another segment are cleared first.
// CHECK-LABEL: hopper.kernel @stages
// CHECK: %[[KEMPTY:.*]] = hopper.make_barriers arrivals 8
// CHECK: hopper.yield
// CHECK: hopper.signal
// CHECK: hopper.product
// CHECK: scf.for {{.*}} -> (tensor<64x64xbf16>, tensor<64x64xf32>)
// CHECK: hopper.wait
// CHECK: scf.if
// CHECK-NEXT: arith.maxsi
// CHECK-NEXT: arith.index_cast
// CHECK-NEXT: hopper.clear_rows
// CHECK-NEXT: hopper.sync %{{.*}} threads 256
// CHECK: hopper.sync
// CHECK: %[[S:.*]] = hopper.product {{.*}} {transpose_b}
// CHECK: %[[O:.*]] = hopper.product %{{.*}} plus %{{.*}} : tensor<64x64xf32> : tensor<64x64xbf16>
// CHECK: hopper.signal
// CHECK: %[[SCORES:.*]] = hopper.product_wait %[[S]] pending 1
// CHECK: hopper.arrive
// CHECK: math.exp2 %[[SCORES]]
// CHECK: hopper.product_wait %[[O]] pending 0
// CHECK: arith.addf
// CHECK: arith.truncf
// CHECK: scf.yield
// CHECK: hopper.product {{.*}} plus
// CHECK: hopper.product_wait %{{.*}} pending 0
tile.program @stages(%q: !tile.view<?x64xbf16>, %k: !tile.view<?x64xbf16>, %v: !tile.view<?x64xbf16>, %o: !tile.view<?x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c100 = arith.constant 100 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %tiles = arith.addi %block, %c1 : index
  %rows = tile.dim %q, 0 : !tile.view<?x64xbf16>
  %queries = tile.load %q[%row, %c0] dims [0, 1] limit(%rows) {tile.name = "load_q"} : !tile.view<?x64xbf16> -> tensor<128x64xbf16>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %sum = scf.for %n = %c0 to %tiles step %c1 iter_args(%acc = %zero) -> tensor<128x64xf32> {
    %first = arith.muli %n, %c64 : index
    %keys = tile.load %k[%first, %c0] dims [0, 1] limit(%c100) {tile.name = "load_k"} : !tile.view<?x64xbf16> -> tensor<64x64xbf16>
    %values = tile.load %v[%first, %c0] dims [0, 1] limit(%c100) {tile.name = "load_v"} : !tile.view<?x64xbf16> -> tensor<64x64xbf16>
    %s = tile.dot %queries, %keys, %zero {transpose_b, tile.name = "scores"} : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    %e = math.exp2 %s {tile.name = "softmax"} : tensor<128x64xf32>
    %kept = arith.addf %acc, %acc {tile.name = "rescale"} : tensor<128x64xf32>
    %p = arith.truncf %e {tile.name = "round"} : tensor<128x64xf32> to tensor<128x64xbf16>
    %next = tile.dot %p, %values, %kept {tile.name = "values"} : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  }
  tile.store %sum, %o[%row, %c0] dims [0, 1] limit(%rows) : tensor<128x64xf32>, !tile.view<?x64xf32>
  tile.return
}
tile.schedule @stages target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, attend = {warpgroups = 2, registers = 240}}
    ops {load_q = {role = "load", barrier = "mbarrier"},
         load_k = {role = "load", buffers = 2, barrier = "mbarrier"},
         load_v = {role = "load", buffers = 2, barrier = "mbarrier"},
         scores = {role = "attend", stage = 0, issue = 0, barrier = "turn"},
         values = {role = "attend", stage = 1, issue = 1, barrier = "turn"},
         softmax = {role = "attend", stage = 0, issue = 2},
         rescale = {role = "attend", stage = 0, issue = 3},
         round = {role = "attend", stage = 0, issue = 4}}

// Without a record for sm_90a a program stays.
// CHECK-LABEL: tile.program @other
tile.program @other(%x: !tile.view<?x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel] {
  tile.return
}
// CHECK: tile.schedule @other target("sm_100a")
tile.schedule @other target("sm_100a") roles {} ops {}

// A sum with `wait` beside another product: it stays in flight until the next
// iteration waits for its own scores, and its operand is released there, if there
// was an iteration before. Keys are the operand of both products.
// CHECK-LABEL: hopper.kernel @sum_in_flight
// CHECK: %[[EMPTY:.*]] = hopper.make_barriers arrivals 8
// CHECK: scf.for %[[N:.*]] = {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (!hopper.flight<64x64xf32>)
// CHECK: %[[ANY:.*]] = arith.cmpi sgt, %[[N]], %c0
// CHECK: %[[S:.*]] = hopper.product {{.*}} {transpose_b}
// CHECK: %[[T:.*]]:2 = hopper.product_wait %[[SUM]], %[[S]] pending 0
// CHECK: scf.if %[[ANY]]
// CHECK-NEXT: hopper.arrive %[[EMPTY]]
// CHECK: %[[HALF:.*]] = arith.truncf %[[T]]#1
// CHECK: %[[NEXT:.*]] = hopper.product %[[HALF]], %{{.*}} plus %[[T]]#0
// CHECK-NOT: hopper.product_wait
// CHECK: scf.yield %[[NEXT]]
// CHECK: hopper.product_wait %{{.*}} pending 0
!narrow = !tile.view<?x64xbf16>
tile.program @sum_in_flight(%q: !narrow, %k: !narrow, %o: !tile.view<?x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c128 : index
  %queries = tile.load %q[%row, %c0] dims [0, 1] {tile.name = "load_q"} : !narrow -> tensor<128x64xbf16>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %sum = scf.for %n = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> tensor<128x64xf32> {
    %at = arith.muli %n, %c64 : index
    %keys = tile.load %k[%at, %c0] dims [0, 1] {tile.name = "load_k"} : !narrow -> tensor<64x64xbf16>
    %s = tile.dot %queries, %keys, %zero {transpose_b, tile.name = "scores"} : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    %half = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xbf16>
    %next = tile.dot %half, %keys, %acc {tile.name = "sum"} : tensor<128x64xbf16>, tensor<64x64xbf16> -> tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  }
  tile.store %sum, %o[%row, %c0] dims [0, 1] : tensor<128x64xf32>, !tile.view<?x64xf32>
  tile.return
}
tile.schedule @sum_in_flight target("sm_90a")
    roles {load = {warpgroups = 1, registers = 24}, multiply = {warpgroups = 2, registers = 240}}
    ops {load_q = {role = "load", barrier = "mbarrier"},
         load_k = {role = "load", buffers = 2, barrier = "mbarrier"},
         scores = {role = "multiply"}, sum = {role = "multiply", wait = 1}}
