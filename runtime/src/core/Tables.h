//===- Tables.h - What an artefact says about a model -----------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_TABLES_H
#define HYBRID_RUNTIME_CORE_TABLES_H

#include "core/ElementType.h"
#include "core/Expression.h"
#include "io/MappedFile.h"

namespace hyb::rt {

struct ModelMeta {
  std::string name;
  std::string spec;
  std::string toolchain;
  int64_t vocabulary = 0;
  int64_t trainedLength = 0;
  int64_t layers = 0;

  static Result<ModelMeta> parse(Bytes text);
};

enum class InitKind : uint8_t {
  Normal, // (std)
  Ones,
  Zeros,
  Constant,                 // (value)
  LogUniform,               // (low, high): log of a uniform number
  InverseSoftplusLogUniform // (low, high, floor)
};

struct ParameterInfo {
  std::string path;
  std::vector<int64_t> shape;
  int64_t offset = 0;   // in elements of the flat buffer
  int64_t elements = 0; // product of the shape
  bool decay = false;
  InitKind init = InitKind::Zeros;
  double values[3] = {};
};

/// Parameters, gradients and each moment are one flat buffer of `elements`.
struct ParameterTable {
  int64_t elements = 0;
  int64_t decayElements = 0;
  std::vector<ParameterInfo> parameters;

  static Result<ParameterTable> parse(Bytes text);
  const ParameterInfo *find(const std::string &path) const;
  /// Without padding.
  int64_t scalars() const;
};

struct StateInfo {
  std::string path;
  std::string kind; // kv, recurrent or conv
  ElementType type = ElementType::F32;
  /// The first is the number of slots.
  std::vector<Expression> sizes;

  /// A key-value cache keeps a row per token, so forgetting tokens is moving a
  /// position; everything else must be restored.
  bool rowPerToken() const { return kind == "kv"; }
};

struct StateTable {
  std::vector<StateInfo> states;

  static Result<StateTable> parse(Bytes text);
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_TABLES_H
