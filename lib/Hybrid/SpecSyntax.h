//===- SpecSyntax.h - syntax of spec and stack operations -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The custom<...> directives of SpecOps.td and StackOps.td, found by the
// generated code through its namespace.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_HYBRID_SPECSYNTAX_H
#define HYBRID_LIB_HYBRID_SPECSYNTAX_H

#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Hybrid/NumberText.h"
#include "hybrid/Hybrid/WordSyntax.h"

namespace hybrid {

/// A real number with or without a fraction: 5, -4.5, 1.0e-5.
mlir::ParseResult parseNumber(mlir::OpAsmParser &parser,
                              mlir::FloatAttr &number);
void printNumber(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                 mlir::FloatAttr number);

/// nope | rope (, base = x)? (, dynamic_ntk = x)?
mlir::ParseResult parsePosition(mlir::OpAsmParser &parser,
                                PositionKindAttr &kind, mlir::FloatAttr &base,
                                mlir::FloatAttr &dynamicNtk);
void printPosition(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                   PositionKindAttr kind, mlir::FloatAttr base,
                   mlir::FloatAttr dynamicNtk);

/// constant, factor = x | log_n (, trained = n)?
mlir::ParseResult parseLogitScale(mlir::OpAsmParser &parser,
                                  LogitScaleKindAttr &kind,
                                  mlir::FloatAttr &factor,
                                  mlir::IntegerAttr &trained);
void printLogitScale(mlir::OpAsmPrinter &printer, mlir::Operation *op,
                     LogitScaleKindAttr kind, mlir::FloatAttr factor,
                     mlir::IntegerAttr trained);

/// A width, or `off`, which is kept as 0.
mlir::ParseResult parseConv(mlir::OpAsmParser &parser,
                            mlir::IntegerAttr &width);
void printConv(mlir::OpAsmPrinter &printer, mlir::Operation *op,
               mlir::IntegerAttr width);

/// Nothing to read: refuses a word that stands where a mixer's clauses end,
/// which would otherwise be taken for the next operation.
/// (The attribute is there because a directive needs one.)
mlir::ParseResult parseEndOfClauses(mlir::OpAsmParser &parser,
                                    mlir::IntegerAttr);
inline void printEndOfClauses(mlir::OpAsmPrinter &, mlir::Operation *,
                              mlir::IntegerAttr) {}

} // namespace hybrid

#endif // HYBRID_LIB_HYBRID_SPECSYNTAX_H
