//===- SpecText.cpp - what the text of a spec may hold -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/SpecText.h"

#include "hybrid/Hybrid/Mixers.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace hybrid;

/// Far above what any text of ours has, far below what costs a stack.
static constexpr int64_t kDeepest = 1000;

/// The offset of the first bracket, or of the first minus of a row of them,
/// that opens more than kDeepest levels; npos when none does.
static size_t findTooDeep(StringRef text) {
  int64_t depth = 0, minuses = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (c == '/' && next == '/') {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
      continue;
    }
    if (!llvm::isSpace(c))
      minuses = c == '-' ? minuses + 1 : 0;
    // `->`, `>=` and `<=` are no brackets.
    bool isArrow = c == '>' && i > 0 && text[i - 1] == '-';
    bool compares = (c == '<' || c == '>') && next == '=';
    if (StringRef("([{<").contains(c) && !compares)
      ++depth;
    else if (StringRef(")]}>").contains(c) && !compares && !isArrow)
      depth = std::max<int64_t>(0, depth - 1);
    if (depth > kDeepest || minuses > kDeepest)
      return i;
  }
  return StringRef::npos;
}

std::unique_ptr<llvm::MemoryBuffer> hybrid::openSpecFile(StringRef path,
                                                         std::string &error) {
  auto file = openInputFile(path, &error);
  if (!file || !file->getBuffer().starts_with("HBX\x1a"))
    return file;
  error = ("'" + path +
           "' is an artefact, not a spec; hybrid-run runs it, and hybrid-run "
           "info --spec shows the spec it was made from")
              .str();
  return nullptr;
}

LogicalResult hybrid::checkSpecText(const llvm::SourceMgr &sources,
                                    MLIRContext &context) {
  const llvm::MemoryBuffer *file =
      sources.getMemoryBuffer(sources.getMainFileID());
  StringRef text = file->getBuffer();
  auto errorAt = [&](size_t offset) {
    auto [line, column] = sources.getLineAndColumn(
        llvm::SMLoc::getFromPointer(text.data() + offset));
    return emitError(FileLineColLoc::get(&context, file->getBufferIdentifier(),
                                         line, column));
  };
  size_t offset = text.find('\0');
  if (offset != StringRef::npos)
    return errorAt(offset) << "byte " << offset
                           << " is 0, and a spec is text; remove it";
  if (!llvm::json::isUTF8(text, &offset))
    return errorAt(offset) << "byte " << offset
                           << " is not UTF-8; save the file as UTF-8";
  if (text.starts_with("\xEF\xBB\xBF"))
    return errorAt(0) << "the file begins with a byte order mark; save it as "
                         "UTF-8 without one";
  offset = findTooDeep(text);
  if (offset != StringRef::npos)
    return errorAt(offset) << "nesting is deeper than " << kDeepest
                           << " levels; a spec has about five";
  return success();
}

OwningOpRef<ModuleOp> hybrid::parseSpec(llvm::SourceMgr &sources,
                                        MLIRContext &context) {
  ScopedDiagnosticHandler handler(&context, [](Diagnostic &diagnostic) {
    std::string prefix =
        ("custom op '" + HybridDialect::getDialectNamespace() + ".").str();
    if (StringRef(diagnostic.str()).starts_with(prefix)) {
      Diagnostic &note = diagnostic.attachNote()
                         << "mixers are " << SoftmaxOp::getOperationName();
      for (const MixerRow &row : getMixerRows())
        note << ", " << HybridDialect::getDialectNamespace() << "." << row.name;
      note << "; " << SwlaOp::getOperationName() << " and "
           << HeadsOp::getOperationName() << " go around them";
    }
    return failure(); // to be printed
  });
  return parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
}
