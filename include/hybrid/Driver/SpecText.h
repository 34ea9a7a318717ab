//===- SpecText.h - what the text of a spec may hold -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_DRIVER_SPECTEXT_H
#define HYBRID_DRIVER_SPECTEXT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>

namespace llvm {
class SourceMgr;
} // namespace llvm

namespace hybrid {

/// The file of a spec, "-" for the standard input; null after an error, which
/// says so when the file is an artefact.
std::unique_ptr<llvm::MemoryBuffer> openSpecFile(llvm::StringRef path,
                                                 std::string &error);

/// Refuses a main file that the parser lets through or does not survive: bytes
/// that are not UTF-8 or zero, which the artefact cannot hold as text, and
/// nesting so deep that a recursive parser runs out of stack. The error goes to
/// the diagnostic handlers of `context`.
llvm::LogicalResult checkSpecText(const llvm::SourceMgr &sources,
                                  mlir::MLIRContext &context);

/// Parses the main file. What the parser says of a name that no operation has
/// is followed by those of the mixers.
mlir::OwningOpRef<mlir::ModuleOp> parseSpec(llvm::SourceMgr &sources,
                                            mlir::MLIRContext &context);

} // namespace hybrid

#endif // HYBRID_DRIVER_SPECTEXT_H
