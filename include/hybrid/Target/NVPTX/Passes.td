//===- Passes.td - passes of the NVPTX target -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_NVPTX_PASSES_TD
#define HYBRID_TARGET_NVPTX_PASSES_TD

include "mlir/Pass/PassBase.td"

def HybridNVPTXAnnotateLayouts
    : Pass<"hybrid-nvptx-annotate-layouts", "mlir::ModuleOp"> {
  let summary = "writes the layout of every tile into the IR, for tests";
  let description = [{
    Each op that makes tiles gets `gpu.layout`: which digits of the register, the
    lane and the warp number run along which dim, the fastest first, or `where
    used` for what is computed at each use. Changes no numbers.

    Before, from `test/Target/NVPTX/annotate-layouts.mlir`:

    ```mlir
    %max = tile.reduce max %masked dim 1 : tensor<64x64xf32>
    ```

    After:

    ```mlir
    %max = tile.reduce max %masked dim 1 {gpu.layout = ["registers [2 x 8 of dim 0] lanes [4 copies, 8 x 1 of dim 0] warps [4 x 16 of dim 0]"]} : tensor<64x64xf32>
    ```
  }];
}

def HybridNVPTXLowerPrograms
    : Pass<"hybrid-nvptx-lower-programs", "mlir::ModuleOp"> {
  let summary = "tile programs become the code of one thread of a block";
  let description = [{
    Every tile is distributed over the registers of a block of 4 or 8 warps by a
    layout (register, lane, warp) -> coordinates, or lies in shared memory.
    Products are `mma.sync`; their operands are copied to shared memory
    asynchronously, ahead of the loop around them. The function has one parameter
    by value, the views and then four grid sizes; the task is the number of the
    block. `hybrid.threads` and `hybrid.shared_bytes` say how it is launched.
    docs/rationale/gpu-code.md describes the parts.

    Before, from `test/Target/NVPTX/lower-programs.mlir`:

    ```mlir
    %next = tile.dot %x, %w, %acc {transpose_b} : tensor<16x16xf32>, tensor<64x16xf32> -> tensor<16x64xf32>
    ```

    After, in f32 as three products in tf32:

    ```mlir
    %s = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k8.row.col.tf32"(%a0, %a1, %a2, %a3, %b0, %b1, %c0, %c1, %c2, %c3) : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_90a\"", "GPU, such as sm_80 or sm_90a">,
  ];
  let statistics = [Statistic<"lowered", "lowered", "Programs lowered">];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::func::FuncDialect",
    "mlir::LLVM::LLVMDialect", "mlir::math::MathDialect",
    "mlir::scf::SCFDialect", "mlir::vector::VectorDialect",
  ];
}

def HybridHopperApplySchedules
    : Pass<"hybrid-hopper-apply-schedules", "mlir::ModuleOp"> {
  let summary = "tile programs with a schedule for sm_90a become hopper kernels";
  let description = [{
    A record has two roles: one whose ops are loads (it becomes a single thread
    that issues bulk copies), and one with the products, whose warpgroups take 64
    rows of every tile each. Loads get as many copies in shared memory as `buffers`
    says, with a barrier for full and one for empty; ops of a loop run in the order
    of `issue`, those of `stage` 1 an iteration later. Products run while others go
    on until somebody uses their result. Programs without such a record stay as
    they are. A record that would use a value before it is there, or that the
    program does not fit, is refused. docs/rationale/hopper.md describes the rules.
    Changes no numbers but those of sums inside of a product.

    Before, from `test/Target/NVPTX/hopper/apply-schedules.mlir`:

    ```mlir
    %x = tile.load %a[%row, %k] dims [0, 1] {tile.name = "load_a"} : !tile.view<?x128xbf16> -> tensor<128x64xbf16>
    ```

    After, in the role that loads:

    ```mlir
    hopper.wait %empty[%copy] parity %parity : !hopper.barriers<3>
    hopper.expect %full[%copy] bytes 16384 : !hopper.barriers<3>
    hopper.tensor_load %map[%row, %k] dims [0, 1] to %buffer[%copy] signals %full[%copy] : !hopper.map<128x64xbf16>, !hopper.buffer<3x128x64xbf16>, !hopper.barriers<3>
    ```
  }];
  let statistics = [Statistic<"applied", "applied", "Schedules applied">];
  let dependentDialects = ["hopper::HopperDialect"];
}

def HybridHopperLowerKernels
    : Pass<"hybrid-hopper-lower-kernels", "mlir::ModuleOp"> {
  let summary = "hopper kernels become the code of one thread";
  let description = [{
    Tiles become registers in the accumulator's layout, what `nvvm` lacks becomes
    inline PTX. The function has the views and the grid as its first parameter by
    value and 128 bytes, aligned to 64, for each tensor map; `hybrid.tensor_maps`
    says of which view and with which box. Changes no numbers.

    Before, from `test/Target/NVPTX/hopper/lower-kernels.mlir`:

    ```mlir
    hopper.product_commit
    ```

    After:

    ```mlir
    llvm.inline_asm has_side_effects "wgmma.commit_group.sync.aligned;", "~{memory}" : () -> ()
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_90a\"", "GPU; only sm_90a has what the kernels use">,
  ];
  let statistics = [Statistic<"lowered", "lowered", "Kernels lowered">];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::func::FuncDialect",
    "mlir::LLVM::LLVMDialect", "mlir::math::MathDialect",
    "mlir::scf::SCFDialect", "mlir::vector::VectorDialect",
  ];
}

#endif // HYBRID_TARGET_NVPTX_PASSES_TD
