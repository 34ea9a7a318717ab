//===- RecurrenceEmitter.h - array notation for the chunk equations ------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_FAMILIES_RECURRENCEEMITTER_H
#define HYBRID_TILE_FAMILIES_RECURRENCEEMITTER_H

#include "hybrid/Tile/Families/KernelBuilder.h"
#include "llvm/ADT/StringSet.h"

namespace hybrid::tile::recurrence {

using mlir::ArrayRef;
using mlir::StringRef;
using mlir::Value;

/// Which operand of a product is read transposed.
enum class Transpose { None, A, B };

/// KernelBuilder with the conventions of array arithmetic: tiles of one rank
/// are stretched along dims of size 1.
class Emitter : public KernelBuilder {
public:
  using KernelBuilder::KernelBuilder;

  static Shape shapeOf(Value tile) {
    return mlir::cast<mlir::RankedTensorType>(tile.getType()).getShape();
  }

  Value add(Value x, Value y) { return with(x, y, &KernelBuilder::add); }
  Value sub(Value x, Value y) { return with(x, y, &KernelBuilder::sub); }
  Value mul(Value x, Value y) { return with(x, y, &KernelBuilder::mul); }
  Value lt(Value x, Value y) { return with(x, y, &KernelBuilder::lt); }
  Value le(Value x, Value y) { return with(x, y, &KernelBuilder::le); }
  Value eq(Value x, Value y) { return with(x, y, &KernelBuilder::eq); }
  /// On tiles the mask is stretched too.
  Value select(Value mask, Value x, Value y);
  /// `x` where the mask holds, else 0.
  Value masked(Value mask, Value x);
  Value scaled(Value x, double factor);
  Value sum(Value x, unsigned dim);
  /// acc + x·y; a null `acc` is zero.
  Value dot(Value x, Value y, Transpose transpose = Transpose::None,
            Value acc = {});

  /// As in KernelBuilder; the op can be named.
  StoreOp store(Value tile, Value view, mlir::ValueRange indices,
                ArrayRef<int64_t> dims, mlir::ValueRange limits = {});

  /// As in KernelBuilder, but the name is `<scope>.<name>` and a second op of
  /// that name stays without one.
  Value named(StringRef name, Value value) {
    return named(name, namedOp(value)), value;
  }
  void named(StringRef name, mlir::Operation *op);
  std::string scope;

private:
  using Binary = Value (KernelBuilder::*)(Value, Value);
  Value with(Value x, Value y, Binary op);

  llvm::StringSet<> names;
};

} // namespace hybrid::tile::recurrence

#endif // HYBRID_TILE_FAMILIES_RECURRENCEEMITTER_H
