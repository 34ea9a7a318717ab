//===- ProgramFormat.h - how programs over views are written --------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TILE_PROGRAMFORMAT_H
#define HYBRID_TILE_PROGRAMFORMAT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"

namespace hybrid::tile {

/// `@name(%view: type, ...) grid map`; name and map become attributes of these
/// names.
mlir::ParseResult
parseProgramHead(mlir::OpAsmParser &parser, mlir::OperationState &result,
                 mlir::StringAttr nameAttr, mlir::StringAttr gridAttr,
                 llvm::SmallVectorImpl<mlir::OpAsmParser::Argument> &views);
void printProgramHead(mlir::OpAsmPrinter &p, llvm::StringRef name,
                      llvm::ArrayRef<mlir::BlockArgument> views,
                      mlir::AffineMapAttr grid);

/// The other attributes, and the body, whose arguments are the views.
void printProgramTail(mlir::OpAsmPrinter &p, mlir::Operation *op,
                      llvm::ArrayRef<llvm::StringRef> printedAttrs);

} // namespace hybrid::tile

#endif // HYBRID_TILE_PROGRAMFORMAT_H
