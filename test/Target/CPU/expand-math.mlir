// RUN: hybrid-opt %s -hybrid-cpu-expand-math | FileCheck %s

// Nothing that LLVM would call a library for is left, and nothing says that
// infinities or NaN do not occur.
// CHECK-LABEL: func @functions
// CHECK-NOT: math.{{(exp|log|tanh|erf|sin|cos|rsqrt|floor|fma)}}
// CHECK-NOT: nnan
// CHECK-NOT: ninf
// CHECK: llvm.intr.fmuladd
// CHECK: return
func.func @functions(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.exp2 %0 : vector<16xf32>
  %2 = math.expm1 %1 : vector<16xf32>
  %3 = math.log %2 : vector<16xf32>
  %4 = math.log1p %3 : vector<16xf32>
  %5 = math.tanh %4 : vector<16xf32>
  %6 = math.erf %5 : vector<16xf32>
  %7 = math.sin %6 : vector<16xf32>
  %8 = math.cos %7 : vector<16xf32>
  %9 = math.floor %8 : vector<16xf32>
  %10 = math.fma %9, %x, %x : vector<16xf32>
  return %10 : vector<16xf32>
}

// CHECK-LABEL: func @scalar
// CHECK: %[[ROOT:.*]] = math.sqrt %{{.*}} : f32
// CHECK: arith.divf %{{.*}}, %[[ROOT]] : f32
func.func @scalar(%x: f32) -> f32 {
  %0 = math.rsqrt %x : f32
  return %0 : f32
}

// Must not: the instruction set has these.
// CHECK-LABEL: func @kept
// CHECK: math.sqrt
// CHECK: math.absf
// CHECK: math.copysign
func.func @kept(%x: f32) -> f32 {
  %0 = math.sqrt %x : f32
  %1 = math.absf %0 : f32
  %2 = math.copysign %1, %x : f32
  return %2 : f32
}
