// RUN: hybrid-opt %s -hybrid-hopper-lower-kernels | FileCheck %s

// The views, and 128 bytes for the tensor map. A barrier starts before its first
// phase; roles differ by warpgroup; the loader is one thread.
// CHECK: llvm.mlir.global external @product_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK-LABEL: func.func @product
// CHECK-SAME: (%{{.*}}: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<176 x i8>}, %[[MAP:.*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>})
// CHECK-SAME: hybrid.shared_bytes = 65568 : i64
// CHECK-SAME: hybrid.tensor_maps = [{box = array<i64: 128, 64>, type = "bf16", view = 0 : i64}]
// CHECK-SAME: hybrid.threads = 384 : i64
// CHECK: mbarrier.init.shared::cta.b64 [$0], 1;
// CHECK: fence.mbarrier_init.release.cluster;
// CHECK: llvm.nvvm.barrier.cta.sync.aligned.all
// CHECK: setmaxnreg.dec.sync.aligned.u32 24;
// CHECK: mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], 16384;
// CHECK: cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4}], [$2];{{.*}} %[[MAP]],
// CHECK: setmaxnreg.inc.sync.aligned.u32 240;
// CHECK: mbarrier.try_wait.parity.shared::cta.b64 over, [$0], $1;
// CHECK: st.shared.v4.b32
// CHECK: fence.proxy.async.shared::cta;
// CHECK: bar.sync $0, 256;
// CHECK: bar.arrive $0, 256;
// CHECK: wgmma.fence.sync.aligned;
// Bits of a descriptor whose depth runs along the columns: 1024 bytes from eight
// rows to the next, 128-byte swizzle.
// CHECK: arith.constant 4611686293305360384 : i64
// CHECK: setp.eq.b32 adds, one, 0;
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// CHECK-SAME: left, right, adds, 1, 1, 0, 0;
// The next 16 of the depth are 32 bytes on.
// CHECK-SAME: setp.ne.b32 adds, one, 0;
// CHECK-SAME: add.s64 right, $64, 2;
// CHECK-SAME: wgmma.mma_async.sync.aligned.m64n128k16
// CHECK: wgmma.commit_group.sync.aligned;
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: llvm.nvvm.fmax.nan.f
// CHECK: llvm.nvvm.shfl.sync.bfly
// CHECK: llvm.nvvm.ex2.approx.ftz.f32
// CHECK: cvt.rn.bf16x2.f32 $0, $1, $2;
// The right operand as it lies: its depth runs along the rows, 2048 bytes per
// step, and its columns go from one panel of 128 rows to the next, 16384 bytes on.
// CHECK: arith.constant 4611686293372403712 : i64
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK-SAME: {$65, $66, $67, $68}, right, adds, 1, 1, 1;
// CHECK-SAME: add.s64 right, $64, 128;
// CHECK: mbarrier.arrive.shared::cta.b64 _, [$0];
// CHECK-NOT: hopper.
hopper.kernel @product(%a: !tile.view<?x128xbf16>, %c: !tile.view<?x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 128, 1)>
    traversal [1, 0] descending [] group 4 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %m = hopper.tensor_map %a : !tile.view<?x128xbf16> -> !hopper.map<128x64xbf16>
  %ring = hopper.allocate : !hopper.buffer<4x128x64xbf16>
  %full = hopper.make_barriers arrivals 1 : !hopper.barriers<4>
  hopper.roles [1, 2] [24, 240] [true, false] {
    %row = hopper.id 0
    hopper.expect %full[%c0] bytes 16384 : !hopper.barriers<4>
    hopper.tensor_load %m[%row, %row] dims [0, 1] to %ring[%c0] signals %full[%c0]
      : !hopper.map<128x64xbf16>, !hopper.buffer<4x128x64xbf16>, !hopper.barriers<4>
    hopper.yield
  }, {
    hopper.wait %full[%c0] parity %c0 : !hopper.barriers<4>
    hopper.clear_rows %ring[%c0] from %c1 : !hopper.buffer<4x128x64xbf16>
    hopper.sync %c1 threads 256
    hopper.signal %c1 threads 256
    %left = hopper.submatrix %ring[%c0] row %c0 : !hopper.buffer<4x128x64xbf16> -> !hopper.matrix<64x64x128xbf16>
    %right = hopper.submatrix %ring[%c0] row %c0 : !hopper.buffer<4x128x64xbf16> -> !hopper.matrix<128x64x128xbf16>
    hopper.product_fence
    %s = hopper.product %left, %right {transpose_b}
      : !hopper.matrix<64x64x128xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x128xf32>
    hopper.product_commit
    %t = hopper.product_wait %s pending 0 : !hopper.flight<64x128xf32> -> tensor<64x128xf32>
    %max = tile.reduce max %t dim 1 : tensor<64x128xf32>
    %e = math.exp2 %t : tensor<64x128xf32>
    %p = arith.truncf %e : tensor<64x128xf32> to tensor<64x128xbf16>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sum = hopper.accumulator %zero : tensor<64x64xf32> -> !hopper.flight<64x64xf32>
    hopper.product_fence
    %o = hopper.product %p, %right plus %sum : !hopper.flight<64x64xf32>
      : tensor<64x128xbf16>, !hopper.matrix<128x64x128xbf16> -> !hopper.flight<64x64xf32>
    hopper.product_commit
    %u = hopper.product_wait %o pending 0 : !hopper.flight<64x64xf32> -> tensor<64x64xf32>
    hopper.arrive %full[%c0] : !hopper.barriers<4>
    hopper.yield
  }
}

// A left operand that lies in columns: 64 of them are a panel, 8192 bytes from
// the one before; 16 of the depth are 16 rows.
// CHECK-LABEL: func.func @columns
// CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16
// CHECK-SAME: left, right, adds, 1, 1, 1, 1;
// CHECK-SAME: add.s64 right, $32, 128;
// CHECK-SAME: add.s64 left, $33, 128;
// Sums are added to what lies there, four neighbours at a time.
// CHECK: ld.global.v4.b32
// CHECK: st.global.v4.b32
hopper.kernel @columns(%a: !tile.view<?x128xbf16>, %c: !tile.view<128x64xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> traversal [0] descending [] group 1 {
  %c0 = arith.constant 0 : i32
  %m = hopper.tensor_map %a : !tile.view<?x128xbf16> -> !hopper.map<64x64xbf16>
  %ring = hopper.allocate : !hopper.buffer<1x64x128xbf16>
  %full = hopper.make_barriers arrivals 1 : !hopper.barriers<1>
  hopper.roles [1, 2] [24, 240] [true, false] {
    %row = hopper.id 0
    hopper.expect %full[%c0] bytes 16384 : !hopper.barriers<1>
    hopper.tensor_load %m[%row, %row] dims [0, 1] to %ring[%c0] signals %full[%c0]
      : !hopper.map<64x64xbf16>, !hopper.buffer<1x64x128xbf16>, !hopper.barriers<1>
    hopper.yield
  }, {
    %w = hopper.warpgroup
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0 : index
    %first = arith.muli %w, %c64 : index
    %column = arith.index_cast %first : index to i32
    hopper.wait %full[%c0] parity %c0 : !hopper.barriers<1>
    %left = hopper.submatrix %ring[%c0] row %c0 column %column : !hopper.buffer<1x64x128xbf16> -> !hopper.matrix<64x64x64xbf16>
    %right = hopper.submatrix %ring[%c0] row %c0 column %c0 : !hopper.buffer<1x64x128xbf16> -> !hopper.matrix<64x64x64xbf16>
    hopper.product_fence
    %s = hopper.product %left, %right {transpose_a}
      : !hopper.matrix<64x64x64xbf16>, !hopper.matrix<64x64x64xbf16> -> !hopper.flight<64x64xf32>
    hopper.product_commit
    %t = hopper.product_wait %s pending 0 : !hopper.flight<64x64xf32> -> tensor<64x64xf32>
    tile.accumulate %t, %c[%first, %zero] dims [0, 1] : tensor<64x64xf32>, !tile.view<128x64xf32>
    hopper.yield
  }
}

// A value per column: a thread reads those of its columns, at constant distances
// from its first one, each with its condition only where a limit cuts the block.
// CHECK-LABEL: func.func @row
// CHECK: scf.if %{{.*}} -> (f32, f32, f32, f32) {
// CHECK-NOT: inline_asm
// CHECK: llvm.getelementptr %[[AT:[0-9]+]][
// CHECK-NEXT: llvm.load {{.*}} invariant
// CHECK-NOT: arith.cmpi
// CHECK-COUNT-3: llvm.getelementptr %[[AT]][
// CHECK: scf.yield
// CHECK: } else {
// CHECK: arith.cmpi
// CHECK-COUNT-4: @p ld.global.nc.b32
hopper.kernel @row(%a: !tile.view<2x?xf32>, %c: !tile.view<128x16xf32>)
    grid affine_map<()[t, s, l, n, c, d] -> (1)> traversal [0] descending [] group 1 {
  hopper.roles [1, 2] [24, 240] [true, false] {
    hopper.yield
  }, {
    %w = hopper.warpgroup
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %end = tile.dim %a, 1 : !tile.view<2x?xf32>
    %first = arith.muli %w, %c64 : index
    %t = tile.load %a[%zero, %first] dims [0, 1] limit(%one, %end) : !tile.view<2x?xf32> -> tensor<1x16xf32>
    %wide = tile.broadcast %t : tensor<1x16xf32> to tensor<64x16xf32>
    tile.store %wide, %c[%first, %zero] dims [0, 1] : tensor<64x16xf32>, !tile.view<128x16xf32>
    hopper.yield
  }
}
