//===- hybrid-opt.cpp - runs any pass alone -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Register.h"
#include "hybrid/Driver/SpecText.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

/// Refuses a file that the parser would not survive. Bytecode is no text, and
/// the standard input can be read only once.
static bool isReadable(const std::string &path) {
  std::string ignored; // the driver says what is wrong with the file
  auto file = path == "-" ? nullptr : mlir::openInputFile(path, &ignored);
  if (!file || file->getBuffer().starts_with("ML\xEFR"))
    return true;
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  return succeeded(hybrid::checkSpecText(sources, context));
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::DialectRegistry registry;
  hybrid::registerAllHybridDialects(registry);
  hybrid::registerAllHybridPasses();
  mlir::registerAllPasses();
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "hybridc pass driver\n", registry);
  if (!isReadable(input))
    return 1;
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, input, output, registry));
}
