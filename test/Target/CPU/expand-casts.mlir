// f16 without F16C is integer arithmetic; with it nothing changes.
// RUN: hybrid-opt %s -hybrid-cpu-expand-casts='level=x86-64' | FileCheck %s
// RUN: hybrid-opt %s -hybrid-cpu-expand-casts='level=x86-64-v3' | FileCheck %s --check-prefix=F16C
// RUN: not hybrid-opt %s -hybrid-cpu-expand-casts='level=x86' 2>&1 | FileCheck %s --check-prefix=LEVEL

// CHECK-LABEL: func @up
// CHECK:         %[[BITS:.+]] = arith.bitcast %{{.+}} : vector<4xf16> to vector<4xi16>
// CHECK:         arith.extui %[[BITS]] : vector<4xi16> to vector<4xi32>
// CHECK-NOT:     arith.extf
// F16C-LABEL: func @up
// F16C-NEXT:    arith.extf
func.func @up(%x: vector<4xf16>) -> vector<4xf32> {
  %0 = arith.extf %x : vector<4xf16> to vector<4xf32>
  return %0 : vector<4xf32>
}

// CHECK-LABEL: func @down
// CHECK-NOT:     arith.truncf
// CHECK:         arith.bitcast %{{.+}} : i16 to f16
// F16C-LABEL: func @down
// F16C-NEXT:    arith.truncf
func.func @down(%x: f32) -> f16 {
  %0 = arith.truncf %x : f32 to f16
  return %0 : f16
}

// Another type is another pass's.
// CHECK-LABEL: func @other
// CHECK-NEXT:    arith.truncf
func.func @other(%x: f32) -> bf16 {
  %0 = arith.truncf %x : f32 to bf16
  return %0 : bf16
}

// LEVEL: level 'x86' is not one of x86-64, x86-64-v3 and x86-64-v4
