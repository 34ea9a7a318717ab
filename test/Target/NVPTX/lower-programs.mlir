// RUN: hybrid-opt %s -hybrid-nvptx-lower-programs -split-input-file | FileCheck %s
// RUN: hybrid-opt %s -hybrid-nvptx-lower-programs=chip=sm_80 -split-input-file | FileCheck %s --check-prefix=THREADS

// A block per task, one parameter by value; a warp reads a row of 16-byte pieces
// and what is past the limit is left out by a predicate.
// CHECK-LABEL: func.func @double(%{{.*}}: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<176 x i8>}) attributes {hybrid.shared_bytes = 0 : i64, hybrid.threads = 128 : i64}
// CHECK: llvm.inline_asm has_side_effects {{.*}}@p ld.global.nc.v4.b32
// CHECK: arith.addf
// CHECK: llvm.inline_asm has_side_effects {{.*}}@p st.global.v4.b32
// CHECK-NOT: barrier
// CHECK: return
tile.program @double(%x: !tile.view<?x64xf32>, %y: !tile.view<?x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 16)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %block = tile.id 0
  %row = arith.muli %block, %c16 : index
  %rows = tile.dim %x, 0 : !tile.view<?x64xf32>
  %a = tile.load %x[%row, %c0] dims [0, 1] limit(%rows) : !tile.view<?x64xf32> -> tensor<16x64xf32>
  %b = arith.addf %a, %a : tensor<16x64xf32>
  tile.store %b, %y[%row, %c0] dims [0, 1] limit(%rows) : tensor<16x64xf32>, !tile.view<?x64xf32>
  tile.return
}

// -----

// Operands are copied two iterations ahead; one barrier per iteration. f32 is
// three products in tf32.
// CHECK-LABEL: func.func @product
// CHECK: llvm.nvvm.cp.async.cg.shared.global.16
// CHECK: llvm.nvvm.cp.async.commit.group
// CHECK: scf.for
// CHECK: llvm.nvvm.cp.async.wait.group
// CHECK: llvm.nvvm.barrier.cta.sync.aligned.all
// CHECK: llvm.nvvm.cp.async.cg.shared.global.16
// CHECK-NOT: barrier
// CHECK-COUNT-3: llvm.nvvm.mma.m16n8k8.row.col.tf32
// CHECK: scf.yield
!matrix = !tile.view<?x128xf32>
tile.program @product(%a: !matrix, %b: !tile.view<64x128xf32>, %c: !tile.view<?x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 16)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %block = tile.id 0
  %row = arith.muli %block, %c16 : index
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %sum = scf.for %k = %c0 to %c128 step %c16 iter_args(%acc = %zero) -> tensor<16x64xf32> {
    %x = tile.load %a[%row, %k] dims [0, 1] : !matrix -> tensor<16x16xf32>
    %w = tile.load %b[%c0, %k] dims [0, 1] : !tile.view<64x128xf32> -> tensor<64x16xf32>
    %next = tile.dot %x, %w, %acc {transpose_b} : tensor<16x16xf32>, tensor<64x16xf32> -> tensor<16x64xf32>
    scf.yield %next : tensor<16x64xf32>
  }
  tile.store %sum, %c[%row, %c0] dims [0, 1] : tensor<16x64xf32>, !tile.view<?x64xf32>
  tile.return
}

// -----

// bf16 goes through ldmatrix; the right operand is transposed on the way.
// CHECK-LABEL: func.func @half
// CHECK: llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16
// CHECK: llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16
// CHECK: llvm.nvvm.mma.m16n8k16.row.col.bf16
// CHECK-NOT: tf32
!half = !tile.view<64x64xbf16>
tile.program @half(%a: !half, %b: !half, %c: !tile.view<64x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel] {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] dims [0, 1] : !half -> tensor<64x64xbf16>
  %y = tile.load %b[%c0, %c0] dims [0, 1] : !half -> tensor<64x64xbf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = tile.dot %x, %y, %zero : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xf32>
  tile.store %sum, %c[%c0, %c0] dims [0, 1] : tensor<64x64xf32>, !tile.view<64x64xf32>
  tile.return
}

// -----

// A program that may begin early lets its successor begin, reads what nothing
// writes, and only then waits; what it waited for is not read past the
// coherent caches.
// CHECK-LABEL: func.func @early
// CHECK-SAME: hybrid.overlaps
// CHECK: llvm.load {{.*}} invariant
// CHECK-NOT: llvm.load {{.*}}!llvm.ptr<1>
// CHECK: llvm.inline_asm has_side_effects {{.*}}"griddepcontrol.launch_dependents;"
// CHECK-NOT: llvm.load {{.*}}!llvm.ptr<1>
// CHECK: llvm.inline_asm has_side_effects {{.*}}"griddepcontrol.wait;"
// CHECK-NOT: invariant
// CHECK: llvm.load {{.*}}!llvm.ptr<1>
// CHECK-NOT: griddepcontrol
// CHECK: return
!row = !tile.view<4x64xf32>
tile.program @early(%x: !row, %w: !row, %y: !row)
    grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel]
    attributes {tile.overlap = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %b = tile.load %w[%c0, %c0] dims [0, 1] : !row -> tensor<4x64xf32>
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !row -> tensor<4x64xf32>
  %sum = arith.addf %a, %b : tensor<4x64xf32>
  tile.store %sum, %y[%c0, %c0] dims [0, 1] : tensor<4x64xf32>, !row
  tile.return
}

// -----

// Large tiles that are asked for before the kernel waits are copied to shared
// memory, those of a choice to one place, and the next kernel begins when they
// have been asked for.
// CHECK-LABEL: func.func @askedEarly
// CHECK: %[[MEMORY:.*]] = llvm.mlir.addressof @askedEarly_shared
// CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[MEMORY]]
// CHECK: scf.if
// CHECK: llvm.getelementptr %[[PLACE]]
// CHECK: cp.async.cg.shared
// CHECK: else
// CHECK: llvm.getelementptr %[[PLACE]]
// CHECK: cp.async.cg.shared
// CHECK-NOT: cp.async.wait
// CHECK: griddepcontrol.launch_dependents
// CHECK-NEXT: llvm.inline_asm {{.*}}griddepcontrol.wait
// CHECK: %[[PART:.*]] = llvm.getelementptr %[[PLACE]][4096]
// CHECK: cp.async.wait
// CHECK: %[[OWN:.*]] = llvm.getelementptr %[[PART]]
// CHECK: llvm.load %[[OWN]]
!matrix = !tile.view<64x256xbf16>
tile.program @askedEarly(%x: !tile.view<1x256xf32>, %p: !matrix, %q: !matrix, %y: !tile.view<8x1xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (2)> order [parallel]
    attributes {tile.overlap = array<i64: 1, 2>} {
  %c0 = arith.constant 0 : index
  %id = tile.id 0
  %first = arith.cmpi eq, %id, %c0 : index
  %b = scf.if %first -> tensor<32x256xbf16> {
    %m = tile.load %p[%c0, %c0] dims [0, 1] : !matrix -> tensor<32x256xbf16>
    scf.yield %m : tensor<32x256xbf16>
  } else {
    %m = tile.load %q[%c0, %c0] dims [0, 1] : !matrix -> tensor<32x256xbf16>
    scf.yield %m : tensor<32x256xbf16>
  }
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<1x256xf32> -> tensor<1x256xf32>
  %part = tile.slice %b dim 0 offset 8 size 8 : tensor<32x256xbf16>
  %wide = arith.extf %part : tensor<8x256xbf16> to tensor<8x256xf32>
  %rows = tile.broadcast %a : tensor<1x256xf32> to tensor<8x256xf32>
  %product = arith.mulf %wide, %rows : tensor<8x256xf32>
  %sum = tile.reduce sum %product dim 1 : tensor<8x256xf32>
  tile.store %sum, %y[%c0, %c0] dims [0, 1] : tensor<8x1xf32>, !tile.view<8x1xf32>
  tile.return
}

// -----

// A product of one row: the copy engine brings the rows of its matrix, those of
// warp w being w, w + 8, ..., to rows 16 bytes further apart, and a barrier counts the
// bytes; the row goes through shared memory, a warp multiplies 8 columns and 32
// of the depth at once by one instruction, in steps that two matrices of the
// row are loaded for, and the sums of eight warps are added.
// CHECK-LABEL: func.func @row_product
// CHECK-SAME: hybrid.shared_bytes = 35712 : i64, hybrid.threads = 256
// CHECK: mbarrier.init.shared::cta.b64 [$0], 8;
// CHECK: fence.mbarrier_init
// CHECK: barrier
// CHECK-NOT: cp.async.cg
// CHECK: scf.if
// CHECK: mbarrier.arrive.expect_tx
// CHECK-COUNT-2: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes {{.*}} %c2048_i32
// CHECK: else
// CHECK: mbarrier.arrive.expect_tx
// CHECK-COUNT-2: cp.async.bulk.shared
// CHECK-NOT: cp.async
// CHECK-NOT: mbarrier.try_wait
// CHECK: griddepcontrol.wait
// CHECK: barrier
// CHECK: mbarrier.try_wait.parity
// CHECK: ldmatrix.sync.aligned.m8n8.x4
// CHECK-COUNT-8: mma.m16n8k16.row.col.bf16
// CHECK-NOT: mma
// CHECK-COUNT-2: llvm.store {{.*}}i32, !llvm.ptr<3>
// CHECK: barrier
// CHECK-COUNT-8: llvm.load {{.*}}!llvm.ptr<3> -> i32
// CHECK-NOT: barrier
// CHECK: return

// Where there is no such engine all threads copy, to rows as long as they are,
// whose pieces of 16 bytes change places by their row's number.
// THREADS-LABEL: func.func @row_product
// THREADS-SAME: hybrid.shared_bytes = 35328 : i64, hybrid.threads = 256
// THREADS-NOT: mbarrier
// THREADS: scf.if
// THREADS: cp.async.cg.shared
// THREADS: else
// THREADS: cp.async.cg.shared
// THREADS-NOT: cp.async.wait
// THREADS: cp.async.wait
// THREADS: barrier
// THREADS: ldmatrix.sync.aligned.m8n8.x4
!matrix = !tile.view<64x1024xbf16>
tile.program @row_product(%x: !tile.view<1x1024xbf16>, %p: !matrix, %q: !matrix, %y: !tile.view<1x16xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (2)> order [parallel]
    attributes {tile.overlap = array<i64: 1, 2>} {
  %c0 = arith.constant 0 : index
  %id = tile.id 0
  %first = arith.cmpi eq, %id, %c0 : index
  %b = scf.if %first -> tensor<16x1024xbf16> {
    %m = tile.load %p[%c0, %c0] dims [0, 1] : !matrix -> tensor<16x1024xbf16>
    scf.yield %m : tensor<16x1024xbf16>
  } else {
    %m = tile.load %q[%c0, %c0] dims [0, 1] : !matrix -> tensor<16x1024xbf16>
    scf.yield %m : tensor<16x1024xbf16>
  }
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<1x1024xbf16> -> tensor<1x1024xbf16>
  %zero = arith.constant dense<0.0> : tensor<1x16xf32>
  %sum = tile.dot %a, %b, %zero {transpose_b} : tensor<1x1024xbf16>, tensor<16x1024xbf16> -> tensor<1x16xf32>
  tile.store %sum, %y[%c0, %c0] dims [0, 1] : tensor<1x16xf32>, !tile.view<1x16xf32>
  tile.return
}

// -----

// Rows past a limit are not copied: fewer bytes are expected, and the place is
// cleared. A block with a large matrix asks for a quarter of a processor's memory:
// beside a large one of another launch there is room for two.
// CHECK-LABEL: func.func @cut_rows
// CHECK-SAME: hybrid.shared_bytes = 58112 : i64
// CHECK: mbarrier.init
// CHECK: scf.for
// CHECK: llvm.store {{.*}}!llvm.ptr<3>
// CHECK: %[[OWN:.*]] = arith.divui
// CHECK: %[[BYTES:.*]] = arith.muli %[[OWN]], %c2048_i32
// CHECK: mbarrier.arrive.expect_tx{{.*}}, %[[BYTES]] :
// CHECK: %[[HAS:.*]] = arith.cmpi sgt, %[[OWN]], %c0_i32
// CHECK: scf.if %[[HAS]]
// CHECK: cp.async.bulk.shared
// CHECK: %[[MORE:.*]] = arith.cmpi sgt, %[[OWN]], %c1_i32
// CHECK: scf.if %[[MORE]]
// CHECK: cp.async.bulk.shared
// CHECK: griddepcontrol.wait
!matrix = !tile.view<40x1024xbf16>
tile.program @cut_rows(%x: !tile.view<1x1024xbf16>, %p: !matrix, %y: !tile.view<1x48xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (2)> order [parallel]
    attributes {tile.overlap = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %c24 = arith.constant 24 : index
  %c40 = arith.constant 40 : index
  %id = tile.id 0
  %column = arith.muli %id, %c24 : index
  %b = tile.load %p[%column, %c0] dims [0, 1] limit(%c40) : !matrix -> tensor<24x1024xbf16>
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<1x1024xbf16> -> tensor<1x1024xbf16>
  %zero = arith.constant dense<0.0> : tensor<1x24xf32>
  %sum = tile.dot %a, %b, %zero {transpose_b} : tensor<1x1024xbf16>, tensor<24x1024xbf16> -> tensor<1x24xf32>
  tile.store %sum, %y[%c0, %column] dims [0, 1] : tensor<1x24xf32>, !tile.view<1x48xf32>
  tile.return
}

// -----

// The copies are waited for in front of the product also where the loop in which
// a barrier comes first does not run.
// CHECK-LABEL: func.func @around_loop
// CHECK: mbarrier.init
// CHECK: cp.async.bulk.shared
// CHECK: scf.for
// CHECK: mbarrier.try_wait.parity
// CHECK: scf.yield {{.*}} i32
// CHECK: mbarrier.try_wait.parity
// CHECK: ldmatrix
!matrix = !tile.view<16x256xbf16>
!rows = !tile.view<?x32xbf16>
tile.program @around_loop(%x: !tile.view<1x256xbf16>, %p: !matrix, %r: !rows, %y: !tile.view<1x16xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel]
    attributes {tile.overlap = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %b = tile.load %p[%c0, %c0] dims [0, 1] : !matrix -> tensor<16x256xbf16>
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<1x256xbf16> -> tensor<1x256xbf16>
  %end = tile.dim %r, 0 : !rows
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %all = scf.for %i = %c0 to %end step %c16 iter_args(%sum = %none) -> tensor<16x16xf32> {
    %u = tile.load %r[%i, %c0] dims [0, 1] limit(%end) : !rows -> tensor<16x32xbf16>
    %next = tile.dot %u, %u, %sum {transpose_b} : tensor<16x32xbf16>, tensor<16x32xbf16> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  %columns = tile.reduce sum %all dim 0 : tensor<16x16xf32>
  %sum = tile.dot %a, %b, %columns {transpose_b} : tensor<1x256xbf16>, tensor<16x256xbf16> -> tensor<1x16xf32>
  tile.store %sum, %y[%c0, %c0] dims [0, 1] : tensor<1x16xf32>, !tile.view<1x16xf32>
  tile.return
}

// -----

// In a loop the barrier would be made again, and what is in the place read by
// threads: they copy.
// CHECK-LABEL: func.func @matrix_in_loop
// CHECK-NOT: mbarrier
// CHECK: scf.for
// CHECK: cp.async.cg.shared
// CHECK-NOT: mbarrier
// CHECK: return
!matrix = !tile.view<64x256xbf16>
tile.program @matrix_in_loop(%x: !tile.view<1x256xbf16>, %p: !matrix, %y: !tile.view<1x16xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel]
    attributes {tile.overlap = array<i64: 0, 1>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %none = arith.constant dense<0.0> : tensor<1x16xf32>
  %all = scf.for %i = %c0 to %c64 step %c16 iter_args(%sum = %none) -> tensor<1x16xf32> {
    %isSome = arith.cmpi ne, %i, %c16 : index
    %more = scf.if %isSome -> tensor<1x16xf32> {
      %b = tile.load %p[%i, %c0] dims [0, 1] : !matrix -> tensor<16x256xbf16>
      %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<1x256xbf16> -> tensor<1x256xbf16>
      %next = tile.dot %a, %b, %sum {transpose_b} : tensor<1x256xbf16>, tensor<16x256xbf16> -> tensor<1x16xf32>
      scf.yield %next : tensor<1x16xf32>
    } else {
      scf.yield %sum : tensor<1x16xf32>
    }
    scf.yield %more : tensor<1x16xf32>
  }
  tile.store %all, %y[%c0, %c0] dims [0, 1] : tensor<1x16xf32>, !tile.view<1x16xf32>
  tile.return
}

// -----

// A matrix that the kernel in front may write is loaded behind the wait, by all
// threads.
// CHECK-LABEL: func.func @written_matrix
// CHECK-NOT: mbarrier
// CHECK: griddepcontrol.wait
// CHECK-NOT: mbarrier
// CHECK: cp.async.cg.shared
// CHECK-NOT: mbarrier
// CHECK: return
!matrix = !tile.view<16x1024xbf16>
tile.program @written_matrix(%x: !tile.view<1x1024xbf16>, %p: !matrix, %y: !tile.view<1x16xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel]
    attributes {tile.overlap = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %b = tile.load %p[%c0, %c0] dims [0, 1] : !matrix -> tensor<16x1024xbf16>
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<1x1024xbf16> -> tensor<1x1024xbf16>
  %zero = arith.constant dense<0.0> : tensor<1x16xf32>
  %sum = tile.dot %a, %b, %zero {transpose_b} : tensor<1x1024xbf16>, tensor<16x1024xbf16> -> tensor<1x16xf32>
  tile.store %sum, %y[%c0, %c0] dims [0, 1] : tensor<1x16xf32>, !tile.view<1x16xf32>
  tile.return
}

// -----

// Also a kernel that accesses nothing waits: its end says that of all in front
// of it.
// CHECK-LABEL: func.func @nothing
// CHECK: griddepcontrol.wait
// CHECK: return
tile.program @nothing(%x: !tile.view<4xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel]
    attributes {tile.overlap = array<i64>} {
  tile.return
}

// -----

// A state may be read early also where the kernel overwrites it, though not
// through a cache that would keep what was there; storing waits.
// CHECK-LABEL: func.func @state
// CHECK-NOT: invariant
// CHECK: llvm.load {{.*}}!llvm.ptr<1>
// CHECK: griddepcontrol.wait
// CHECK-NOT: invariant
// CHECK: st.global
// CHECK: return
!state = !tile.view<4x64xf32>
tile.program @state(%s: !state)
    grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel]
    attributes {tile.overlap = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %old = tile.load %s[%c0, %c0] dims [0, 1] : !state -> tensor<4x64xf32>
  %sum = arith.addf %old, %old : tensor<4x64xf32>
  tile.store %sum, %s[%c0, %c0] dims [0, 1] : tensor<4x64xf32>, !state
  tile.return
}

// -----

// What a loop reads and nothing writes is copied ahead, and the first copies
// begin before the kernel waits, though what the loop starts with does not.
// CHECK-LABEL: func.func @stream
// CHECK-COUNT-3: cp.async.commit.group
// CHECK: griddepcontrol.wait
// CHECK: llvm.load {{.*}}!llvm.ptr<1>
// CHECK: scf.for
// CHECK: cp.async.wait.group
// CHECK: cp.async.commit.group
// CHECK: return
!keys = !tile.view<?x64xf32>
tile.program @stream(%keys: !keys, %x: !tile.view<64x64xf32>, %y: !tile.view<64x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t)> order [parallel]
    attributes {tile.overlap = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %rows = tile.dim %keys, 0 : !keys
  %start = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<64x64xf32> -> tensor<64x64xf32>
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %tiles = arith.divui %rows, %c64 : index
  %sum = scf.for %n = %c0 to %tiles step %c1 iter_args(%sum = %start) -> tensor<64x64xf32> {
    %row = arith.muli %n, %c64 : index
    %tile = tile.load %keys[%row, %c0] dims [0, 1] limit(%rows) : !keys -> tensor<64x64xf32>
    %next = arith.addf %sum, %tile : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %sum, %y[%c0, %c0] dims [0, 1] : tensor<64x64xf32>, !tile.view<64x64xf32>
  tile.return
}

// -----

// A tile with fewer pieces than lanes is copied by the first of them, once: lanes
// 0 to 3 of the first warp.
// CHECK-LABEL: func.func @one_row
// CHECK-COUNT-2: cp.async.cg.shared.global.16
// CHECK: arith.constant 28 : i32
// CHECK: %[[OTHERS:.*]] = arith.constant 28 : i32
// CHECK-NEXT: %[[DIGITS:.*]] = arith.andi %{{.*}}, %[[OTHERS]]
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NEXT: %[[FIRST:.*]] = arith.cmpi eq, %[[DIGITS]], %[[ZERO]]
// CHECK: %[[ONCE:.*]] = arith.andi %[[FIRST]],
// CHECK-NEXT: scf.if %[[ONCE]] {
// CHECK-COUNT-1: cp.async.cg.shared.global.16
// CHECK-NEXT: }
tile.program @one_row(%a: !tile.view<64x64xbf16>, %b: !tile.view<1x64xbf16>, %c: !tile.view<64x1xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : tensor<64x1xf32>
  %sum = scf.for %k = %c0 to %c64 step %c32 iter_args(%acc = %zero) -> tensor<64x1xf32> {
    %x = tile.load %a[%c0, %k] dims [0, 1] : !tile.view<64x64xbf16> -> tensor<64x32xbf16>
    %w = tile.load %b[%c0, %k] dims [0, 1] : !tile.view<1x64xbf16> -> tensor<1x32xbf16>
    %next = tile.dot %x, %w, %acc {transpose_b} : tensor<64x32xbf16>, tensor<1x32xbf16> -> tensor<64x1xf32>
    scf.yield %next : tensor<64x1xf32>
  }
  tile.store %sum, %c[%c0, %c0] dims [0, 1] : tensor<64x1xf32>, !tile.view<64x1xf32>
  tile.return
}

// -----

// Rows that are known to be apart are stored without waiting for each other;
// what may be the same row waits.
// CHECK-LABEL: func.func @apart
// CHECK: st.global
// CHECK-NOT: barrier
// CHECK: st.global
// CHECK: barrier
// CHECK: st.global
!rows = !tile.view<?x128xf32>
tile.program @apart(%x: !rows, %y: !rows)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %block = tile.id 0
  %a = tile.load %x[%c0, %c0] dims [1] : !rows -> tensor<128xf32>
  tile.store %a, %y[%c0, %c0] dims [1] : tensor<128xf32>, !rows
  tile.store %a, %y[%c1, %c0] dims [1] : tensor<128xf32>, !rows
  tile.store %a, %y[%block, %c0] dims [1] : tensor<128xf32>, !rows
  tile.return
}

// -----

// Parts that meet in shared memory are read in front of the branches, which do
// not wait then.
// CHECK-LABEL: func.func @branches
// CHECK: barrier
// CHECK-NOT: barrier
// CHECK: scf.if
// CHECK-NOT: barrier
// CHECK: return
tile.program @branches(%x: !tile.view<8x128xf32>, %y: !tile.view<16xf32>, %z: !tile.view<16xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (2)> order [parallel] {
  %c0 = arith.constant 0 : index
  %block = tile.id 0
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<8x128xf32> -> tensor<8x128xf32>
  %b = arith.addf %a, %a : tensor<8x128xf32>
  %s = tile.reduce sum %a dim 1 : tensor<8x128xf32>
  %t = tile.reduce sum %b dim 1 : tensor<8x128xf32>
  %u = tile.reshape %s : tensor<8x1xf32> to tensor<8xf32>
  %v = tile.reshape %t : tensor<8x1xf32> to tensor<8xf32>
  %w = tile.concat %u, %v dim 0 : tensor<8xf32>, tensor<8xf32>
  %first = arith.cmpi eq, %block, %c0 : index
  scf.if %first {
    tile.store %w, %y[%c0] dims [0] : tensor<16xf32>, !tile.view<16xf32>
  } else {
    tile.store %w, %z[%c0] dims [0] : tensor<16xf32>, !tile.view<16xf32>
  }
  tile.return
}

// -----

// A barrier for a sum does not wait for a matrix that is on its way; the one in
// front of who reads it does.
// CHECK-LABEL: func.func @pendingCopies
// CHECK: cp.async.cg.shared
// CHECK: griddepcontrol.wait
// CHECK-NOT: cp.async.wait
// CHECK: barrier
// CHECK: cp.async.wait
// CHECK: barrier
// CHECK: return
!wide = !tile.view<8x1024xbf16>
tile.program @pendingCopies(%x: !tile.view<1x1024xf32>, %p: !wide, %y: !tile.view<8x1xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel]
    attributes {tile.overlap = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %m = tile.load %p[%c0, %c0] dims [0, 1] : !wide -> tensor<8x1024xbf16>
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<1x1024xf32> -> tensor<1x1024xf32>
  %s = tile.reduce sum %a dim 1 : tensor<1x1024xf32>
  %all = tile.broadcast %s : tensor<1x1xf32> to tensor<1x1024xf32>
  %n = arith.mulf %a, %all : tensor<1x1024xf32>
  %wide = arith.extf %m : tensor<8x1024xbf16> to tensor<8x1024xf32>
  %rows = tile.broadcast %n : tensor<1x1024xf32> to tensor<8x1024xf32>
  %product = arith.mulf %wide, %rows : tensor<8x1024xf32>
  %sum = tile.reduce sum %product dim 1 : tensor<8x1024xf32>
  tile.store %sum, %y[%c0, %c0] dims [0, 1] : tensor<8x1xf32>, !tile.view<8x1xf32>
  tile.return
}

// -----

// Registers for as many warps on a multiprocessor as a program says.
// CHECK-LABEL: func.func @wide({{.*}}attributes {hybrid.blocks = 3 : i64, hybrid.shared_bytes = 0 : i64, hybrid.threads = 256 : i64}
tile.program @wide(%x: !tile.view<16x1024xf32>, %y: !tile.view<16x1024xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> order [parallel]
    attributes {tile.warps = 24 : i64} {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] dims [0, 1] : !tile.view<16x1024xf32> -> tensor<16x1024xf32>
  %two = arith.addf %a, %a : tensor<16x1024xf32>
  tile.store %two, %y[%c0, %c0] dims [0, 1] : tensor<16x1024xf32>, !tile.view<16x1024xf32>
  tile.return
}
