//===- ProgramTable.cpp - tile programs, one per content -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProgramTable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace hybrid;

/// What a program depends on: everything about `op` but its operands' values
/// and its place.
static std::string requestOf(Operation *op, StringRef variant) {
  std::string request;
  llvm::raw_string_ostream os(request);
  os << variant << '\0' << op->getName() << '\0';
  // Inherent attributes alone: others are notes of other phases.
  os << op->getPropertiesAsAttribute() << '\0';
  llvm::interleaveComma(op->getOperandTypes(), os);
  os << " -> ";
  llvm::interleaveComma(op->getResultTypes(), os);
  // In the local scope the operands of `op` itself have no names.
  if (op->getNumRegions())
    op->print(os, OpPrintingFlags().useLocalScope());
  return request;
}

/// The record behind a program, or null.
static tile::ScheduleOp recordOf(tile::ProgramOp program) {
  auto record = dyn_cast_or_null<tile::ScheduleOp>(program->getNextNode());
  bool isOwn = record && record.getProgram() == program.getSymName();
  return isOwn ? record : tile::ScheduleOp();
}

static void rename(tile::ProgramOp program, StringRef name) {
  if (tile::ScheduleOp record = recordOf(program))
    record.setProgram(name);
  program.setSymName(name);
}

tile::ProgramOp ProgramTable::get(Operation *op, StringRef variant,
                                  Build build) {
  tile::ProgramOp &slot = byRequest[requestOf(op, variant)];
  if (slot)
    return slot;
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  tile::ProgramOp program = build(builder, module);
  if (!program)
    return {};
  return slot = unique(program, program.getSymName());
}

tile::ProgramOp ProgramTable::unique(tile::ProgramOp program,
                                     StringRef family) {
  std::string familyName = family.str();
  rename(program, "program");
  tile::ScheduleOp record = recordOf(program);
  std::string content = familyName;
  llvm::raw_string_ostream os(content);
  program->print(os, OpPrintingFlags().useLocalScope());
  if (record)
    record->print(os, OpPrintingFlags().useLocalScope());
  tile::ProgramOp &known = byContent[content];
  if (known) {
    if (record)
      record.erase();
    program.erase();
    return known;
  }
  uint32_t hash = static_cast<uint32_t>(llvm::xxh3_64bits(content));
  std::string name =
      familyName + "_" + llvm::utohexstr(hash, /*LowerCase=*/true, 8);
  // Two contents with one hash: tell them apart by a further letter.
  while (module.lookupSymbol(name))
    name += "x";
  rename(program, name);
  return known = program;
}

tile::ProgramOp ProgramTable::relaxed(tile::ProgramOp program,
                                      ArrayRef<bool> strided) {
  tile::ProgramOp copy = program.clone();
  module.push_back(copy);
  if (tile::ScheduleOp record = recordOf(program))
    module.push_back(record.clone());
  for (auto [argument, isStrided] : llvm::zip_equal(copy.getViews(), strided)) {
    auto type = cast<tile::ViewType>(argument.getType());
    if (!isStrided)
      continue;
    SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
    strides.back() = 1;
    argument.setType(tile::ViewType::get(type.getContext(), type.getShape(),
                                         type.getElementType(), strides));
  }
  // The hash at the end of the name is of the old content.
  return unique(copy, program.getSymName().rsplit('_').first);
}
