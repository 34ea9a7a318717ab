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

    ```mlir
    %x = tile.load %v[%i, %z] dims [0, 1] : ...     // cpu.home = ["in_view"]
    %y = math.exp %x : tensor<16x64xf32>            // cpu.home = ["fused"]
    %m = tile.reduce max %y dim 1 : ...             // cpu.home = ["buffer 0"]
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

    ```mlir
    %b = arith.addf %a, %a : tensor<16x64xf32>
    tile.store %b, %y[%row, %c0] dims [0, 1] : tensor<16x64xf32>, !tile.view<?x64xf32>
    // becomes, for x86-64-v4
    scf.for %i = %c0 to %c1024 step %c16 : i64 {
      %x = llvm.load %from[%i] : vector<16xf32>
      %s = arith.addf %x, %x fastmath<contract> : vector<16xf32>
      llvm.store %s, %to[%i] : vector<16xf32>
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
    (`erf` within 6; `exp` within 1.2e-7 relative on [-87, 0]); denormals, infinities and NaN are
    kept. Angles are reduced in f64. Any other `math` op is an error.

    ```mlir
    %y = math.rsqrt %x : vector<16xf32>
    // becomes
    %one = arith.constant dense<1.000000e+00> : vector<16xf32>
    %s = math.sqrt %x : vector<16xf32>
    %y = arith.divf %one, %s : vector<16xf32>
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::LLVM::LLVMDialect"];
  let statistics = [Statistic<"expanded", "expanded", "Ops expanded">];
}

#endif // HYBRID_TARGET_CPU_PASSES_TD
