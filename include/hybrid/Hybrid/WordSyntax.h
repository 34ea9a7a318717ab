//===- WordSyntax.h - enumerations written as bare words -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The directive `custom<Word>` of the hybrid and tile dialects. An
// enumeration's cases count from 0.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_WORDSYNTAX_H
#define HYBRID_HYBRID_WORDSYNTAX_H

#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

namespace hybrid {

/// One word of an enumeration; another word is an error that lists them all.
template <typename AttrT>
mlir::ParseResult parseWord(mlir::OpAsmParser &parser, AttrT &attr) {
  using Enum = decltype(attr.getValue());
  llvm::SMLoc loc = parser.getCurrentLocation();
  llvm::StringRef word;
  if (parser.parseKeyword(&word))
    return mlir::failure();
  llvm::SmallVector<llvm::StringRef> known;
  for (uint32_t i = 0; !stringifyEnum(static_cast<Enum>(i)).empty(); ++i) {
    known.push_back(stringifyEnum(static_cast<Enum>(i)));
    if (known.back() != word)
      continue;
    attr = AttrT::get(parser.getContext(), static_cast<Enum>(i));
    return mlir::success();
  }
  return parser.emitError(loc)
         << "unknown word '" << word << "' for " << AttrT::getMnemonic()
         << "; write one of " << llvm::join(known, ", ");
}

template <typename AttrT>
void printWord(mlir::OpAsmPrinter &printer, mlir::Operation *, AttrT attr) {
  printer << stringifyEnum(attr.getValue());
}

} // namespace hybrid

#endif // HYBRID_HYBRID_WORDSYNTAX_H
