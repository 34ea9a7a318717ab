//===- GpuViews.h - a kernel's views as it reads them -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_NVPTX_GPUVIEWS_H
#define HYBRID_LIB_TARGET_NVPTX_GPUVIEWS_H

#include "GpuBuilder.h"

#include "hybrid/Target/LaunchArguments.h"
#include "hybrid/Tile/TileOps.h"

namespace hybrid::nvptx {

/// Reads the fields of view `number` behind `arguments`, the kernel's
/// structure. Sizes and strides are i64, and constants where the type knows
/// them.
class ViewReader {
public:
  ViewReader(GpuBuilder &b, mlir::Value arguments, int64_t number,
             tile::ViewType type)
      : b(b), arguments(arguments), start(number * kViewBytes), type(type) {}

  /// In global memory.
  mlir::Value base();
  mlir::Value size(int64_t dim);
  mlir::Value stride(int64_t dim);

private:
  mlir::Value field(mlir::Type fieldType, int64_t offset);
  mlir::Value number(int64_t known, int64_t offset);

  GpuBuilder &b;
  mlir::Value arguments;
  int64_t start;
  tile::ViewType type;
};

} // namespace hybrid::nvptx

#endif // HYBRID_LIB_TARGET_NVPTX_GPUVIEWS_H
