//===- Passes.td - passes of the NVPTX target -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_NVPTX_PASSES_TD
#define HYBRID_TARGET_NVPTX_PASSES_TD

include "mlir/Pass/PassBase.td"

def HybridNVPTXLowerPrograms
    : Pass<"hybrid-nvptx-lower-programs", "mlir::ModuleOp"> {
  let summary = "tile programs become functions that a block of threads shares";
  let description = [{
    The generic path to a GPU: the loop nests of `hybrid-cpu-lower-programs`, with
    the elements of each result dealt to 128 threads in turn and a barrier after
    each nest. The function has one parameter by value, the views and then four grid
    sizes; the task is the number of the block, and scratch is its dynamic shared memory,
    whose size is the attribute `hybrid.scratch_bytes`. A product gives each
    thread blocks of 4 x 4 results.

    Before, from `test/Target/NVPTX/lower-programs.mlir`:

    ```mlir
    %a = tile.load %x[%row, %c0] dims [0, 1] : !tile.view<?x64xf32> -> tensor<16x64xf32>
    %b = arith.addf %a, %a : tensor<16x64xf32>
    tile.store %b, %y[%row, %c0] dims [0, 1] : tensor<16x64xf32>, !tile.view<?x64xf32>
    ```

    After:

    ```mlir
    scf.for %i = %thread to %c1024 step %c128 : i64 {
      ...
      %x = llvm.load %from {alignment = 4 : i64} : !llvm.ptr -> f32
      %s = arith.addf %x, %x fastmath<contract> : f32
      ...
      llvm.store %s, %to {alignment = 4 : i64} : f32, !llvm.ptr
    }
    ...
    llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"(%c0) : (i32) -> ()
    ```
  }];
  let statistics = [Statistic<"lowered", "lowered", "Programs lowered">];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::func::FuncDialect",
    "mlir::LLVM::LLVMDialect", "mlir::math::MathDialect",
    "mlir::scf::SCFDialect", "mlir::vector::VectorDialect",
  ];
}

#endif // HYBRID_TARGET_NVPTX_PASSES_TD
