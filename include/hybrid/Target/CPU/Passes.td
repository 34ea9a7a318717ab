//===- Passes.td - passes of the CPU target -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_CPU_PASSES_TD
#define HYBRID_TARGET_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def HybridCPUAnnotatePlacement : Pass<"hybrid-cpu-annotate-placement", "mlir::ModuleOp"> {
  let summary = "shows which tiles get memory, and where";
  let description = [{
    Changes nothing but attributes: every op with tiles gets `cpu.home`, one
    string per tile, and every program `cpu.scratch_bytes`. A tile is `fused`
    (computed inside the loop nest of its consumer), an `alias` (other strides
    over the tile it is made from), `in_view` (read where it was loaded from
    unless it is ragged), `constant`, or `buffer` with its offset in scratch.

    Before, from `test/Target/CPU/annotate-placement.mlir`:

    ```mlir
    %a = tile.load %x[%row, %c0] dims [0, 1] : !tile.view<?x64xf32> -> tensor<16x64xf32>
    %b = arith.mulf %a, %a : tensor<16x64xf32>
    %m = tile.reduce max %b dim 1 : tensor<16x64xf32>
    ```

    After:

    ```mlir
    %a = tile.load %x[%row, %c0] dims [0, 1] {cpu.home = ["in_view"]} : !tile.view<?x64xf32> -> tensor<16x64xf32>
    %b = arith.mulf %a, %a {cpu.home = ["fused"]} : tensor<16x64xf32>
    %m = tile.reduce max %b dim 1 {cpu.home = ["buffer 0"]} : tensor<16x64xf32>
    ```
  }];
}

def HybridCPULowerPrograms : Pass<"hybrid-cpu-lower-programs", "mlir::ModuleOp"> {
  let summary = "tile programs become functions of loops over scratch";
  let description = [{
    Every `tile.program` becomes a `func.func` of the kernel border,

        void (const hyb_view *views, const int64_t *grid, int64_t task, void *scratch)

    with the attribute `hybrid.scratch_bytes`. Chains of elementwise ops, and the
    reduction or store that ends them, become one loop nest each, in vectors of
    the level along the last dim. Products become calls of private functions, one
    per shape, that keep a block of the result in registers. Blocks inside their
    limits are read where they lie. Ordered grid dims become loops. Changes
    numbers only by fusing products with sums where the level can.

    Before, from `test/Target/CPU/lower-programs.mlir`:

    ```mlir
    %a = tile.load %x[%row, %c0] dims [0, 1] : !tile.view<?x64xf32> -> tensor<16x64xf32>
    %b = arith.addf %a, %a : tensor<16x64xf32>
    tile.store %b, %y[%row, %c0] dims [0, 1] : tensor<16x64xf32>, !tile.view<?x64xf32>
    ```

    After, for `level=x86-64-v4`:

    ```mlir
    scf.for %i = %c0 to %c1024 step %c16 : i64 {
      ...
      %x = llvm.load %from {alignment = 4 : i64} : !llvm.ptr -> vector<16xf32>
      %s = arith.addf %x, %x fastmath<contract> : vector<16xf32>
      ...
      llvm.store %s, %to {alignment = 4 : i64} : vector<16xf32>, !llvm.ptr
    }
    ```
  }];
  let options = [
    Option<"level", "level", "std::string", "\"x86-64-v4\"",
           "instruction set: x86-64, x86-64-v3 or x86-64-v4">,
  ];
  let statistics = [Statistic<"lowered", "lowered", "Programs lowered">];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::func::FuncDialect", "mlir::LLVM::LLVMDialect",
    "mlir::math::MathDialect", "mlir::scf::SCFDialect", "mlir::vector::VectorDialect",
  ];
}

def HybridCPUExpandMath : Pass<"hybrid-cpu-expand-math"> {
  let summary = "elementary functions become arithmetic";
  let description = [{
    A kernel imports nothing, so `math` ops that LLVM would turn into calls of
    libm are expanded on f32 scalars and vectors: `exp`, `exp2`, `expm1`, `log`,
    `log1p`, `tanh`, `erf`, `sin`, `cos`, `rsqrt`, `floor`; `fma` becomes
    `llvm.fmuladd`, which is fused where the level has the instruction. `sqrt`,
    `absf` and `copysign` stay. Errors are within 4 ulp of the f32 result
    (`erf` within 6; `exp` within 1.2e-7 relative on [-87, 0]); denormals, infinities
    and NaN are kept. Angles are reduced in f64. Functions of f16 and bf16 are those
    of f32, rounded once. Any other `math` op is an error.

    Before, from `test/Target/CPU/expand-math.mlir`:

    ```mlir
    func.func @scalar(%x: f32) -> f32 {
      %0 = math.rsqrt %x : f32
      return %0 : f32
    }
    ```

    After:

    ```mlir
    func.func @scalar(%x: f32) -> f32 {
      %one = arith.constant 1.000000e+00 : f32
      %0 = math.sqrt %x : f32
      %1 = arith.divf %one, %0 : f32
      return %1 : f32
    }
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::LLVM::LLVMDialect"];
  let statistics = [Statistic<"expanded", "expanded", "Ops expanded">];
}

def HybridCPUExpandCasts : Pass<"hybrid-cpu-expand-casts"> {
  let summary = "f16 on a level without F16C";
  let description = [{
    On x86-64, `arith.extf` from f16 and `arith.truncf` to it become integer
    arithmetic, because LLVM would call a library. Rounding is to nearest even;
    denormal numbers, infinities and NaN are kept. On the other levels nothing
    changes: they have F16C.

    Before, from `test/Target/CPU/expand-casts.mlir`:

    ```mlir
    %0 = arith.extf %x : vector<4xf16> to vector<4xf32>
    ```

    After:

    ```mlir
    %bits = arith.bitcast %x : vector<4xf16> to vector<4xi16>
    %wide = arith.extui %bits : vector<4xi16> to vector<4xi32>
    ...
    ```
  }];
  let options = [
    Option<"level", "level", "std::string", "\"x86-64\"",
           "instruction set: x86-64, x86-64-v3 or x86-64-v4">,
  ];
  let dependentDialects = ["mlir::arith::ArithDialect"];
  let statistics = [Statistic<"expanded", "expanded", "Ops expanded">];
}

#endif // HYBRID_TARGET_CPU_PASSES_TD
