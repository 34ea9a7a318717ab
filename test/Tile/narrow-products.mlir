// Products in the type in which an operand was loaded.
// RUN: hybrid-opt %s -pass-pipeline='builtin.module(tile.program(hybrid-narrow-products,canonicalize))' | FileCheck %s

#once = affine_map<()[t, s, l, n, c, d] -> (1)>
!half = !tile.view<16x64xbf16>
!wide = !tile.view<16x16xf32>

// Both were loaded; a change of shape does not hide it.
// CHECK-LABEL: tile.program @loaded
// CHECK:         %[[X:.+]] = tile.load
// CHECK:         %[[Y:.+]] = tile.load
// CHECK:         %[[T:.+]] = tile.transpose %[[Y]] [1, 0] : tensor<16x64xbf16>
// CHECK-NOT:     arith.extf
// CHECK:         tile.dot %[[X]], %[[T]], %{{.+}} : tensor<16x64xbf16>, tensor<64x16xbf16> -> tensor<16x16xf32>
tile.program @loaded(%a: !half, %b: !half, %c: !wide) grid #once order [parallel] {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %x = tile.load %a[%c0, %c0] dims [0, 1] : !half -> tensor<16x64xbf16>
  %y = tile.load %b[%c0, %c0] dims [0, 1] : !half -> tensor<16x64xbf16>
  %xw = arith.extf %x : tensor<16x64xbf16> to tensor<16x64xf32>
  %yw = arith.extf %y : tensor<16x64xbf16> to tensor<16x64xf32>
  %t = tile.transpose %yw [1, 0] : tensor<16x64xf32>
  %s = tile.dot %xw, %t, %zero : tensor<16x64xf32>, tensor<64x16xf32> -> tensor<16x16xf32>
  tile.store %s, %c[%c0, %c0] dims [0, 1] : tensor<16x16xf32>, !wide
  tile.return
}

// A computed operand is rounded for the product; what else reads it does not
// see that. Two computed ones are rounded to the type of the views.
// CHECK-LABEL: tile.program @computed
// CHECK:         %[[LOAD:.+]] = tile.load
// CHECK:         %[[Q:.+]] = arith.mulf
// CHECK:         %[[R:.+]] = arith.truncf %[[Q]] : tensor<16x64xf32> to tensor<16x64xbf16>
// CHECK:         %[[S:.+]] = tile.dot %[[R]], %[[LOAD]], %{{.+}} {transpose_b} : tensor<16x64xbf16>, tensor<16x64xbf16> -> tensor<16x16xf32>
// CHECK:         %[[L:.+]] = arith.truncf %[[Q]] : tensor<16x64xf32> to tensor<16x64xbf16>
// CHECK:         %[[M:.+]] = arith.truncf %[[Q]] : tensor<16x64xf32> to tensor<16x64xbf16>
// CHECK:         tile.dot %[[L]], %[[M]], %[[S]] {transpose_b} : tensor<16x64xbf16>, tensor<16x64xbf16> -> tensor<16x16xf32>
tile.program @computed(%a: !half, %c: !wide) grid #once order [parallel] {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %load = tile.load %a[%c0, %c0] dims [0, 1] : !half -> tensor<16x64xbf16>
  %k = arith.extf %load : tensor<16x64xbf16> to tensor<16x64xf32>
  %q = arith.mulf %k, %k : tensor<16x64xf32>
  %s = tile.dot %q, %k, %zero {transpose_b} : tensor<16x64xf32>, tensor<16x64xf32> -> tensor<16x16xf32>
  %t = tile.dot %q, %q, %s {transpose_b} : tensor<16x64xf32>, tensor<16x64xf32> -> tensor<16x16xf32>
  tile.store %t, %c[%c0, %c0] dims [0, 1] : tensor<16x16xf32>, !wide
  tile.return
}

// Without a 16-bit view a product of computed tiles is one of f32.
// CHECK-LABEL: tile.program @wide
// CHECK-NOT:     arith.truncf
// CHECK:         tile.dot %{{.+}}, %{{.+}}, %{{.+}} : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
tile.program @wide(%a: !wide, %c: !wide) grid #once order [parallel] {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %x = tile.load %a[%c0, %c0] dims [0, 1] : !wide -> tensor<16x16xf32>
  %q = arith.mulf %x, %x : tensor<16x16xf32>
  %s = tile.dot %q, %q, %zero : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  tile.store %s, %c[%c0, %c0] dims [0, 1] : tensor<16x16xf32>, !wide
  tile.return
}

// What is in 16 bits already stays as it is.
// CHECK-LABEL: tile.program @narrow
// CHECK:         %[[N:.+]] = tile.load
// CHECK:         tile.dot %[[N]], %[[N]], %{{.+}} {transpose_b} : tensor<16x64xbf16>, tensor<16x64xbf16> -> tensor<16x16xf32>
tile.program @narrow(%a: !half, %c: !wide) grid #once order [parallel] {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %x = tile.load %a[%c0, %c0] dims [0, 1] : !half -> tensor<16x64xbf16>
  %s = tile.dot %x, %x, %zero {transpose_b} : tensor<16x64xbf16>, tensor<16x64xbf16> -> tensor<16x16xf32>
  tile.store %s, %c[%c0, %c0] dims [0, 1] : tensor<16x16xf32>, !wide
  tile.return
}
