//===- SpecFuzz.cpp - any text as a spec -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Input: the text of a spec. It is read as hybridc reads it, verified, and its
// stack expanded. Text that is refused comes with an error that says something;
// what is accepted prints as text that is accepted and prints the same.
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/SpecText.h"
#include "hybrid/Hybrid/HybridDialect.h"
#include "hybrid/Stack/Passes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/SourceMgr.h"
#include <cstdlib>

using namespace mlir;

namespace {

/// A context keeps every attribute that it has seen: it is replaced from time
/// to time.
class Session {
public:
  Session() : context(MLIRContext::Threading::DISABLED) {
    context.loadDialect<hybrid::HybridDialect, func::FuncDialect,
                        arith::ArithDialect, math::MathDialect>();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
        return;
      errors += diagnostic.str();
    });
  }

  void tryText(llvm::StringRef text) {
    OwningOpRef<ModuleOp> module = read(text);
    if (!module)
      return;
    expectSamePrint(*module);
    PassManager passes(&context);
    passes.addPass(hybrid::createHybridExpandStack());
    errors.clear();
    if (failed(passes.run(*module)))
      return expectReason("an expansion that fails");
    expectSamePrint(*module);
  }

private:
  /// Null for text that is refused.
  OwningOpRef<ModuleOp> read(llvm::StringRef text) {
    errors.clear();
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text),
                               llvm::SMLoc());
    OwningOpRef<ModuleOp> module;
    if (succeeded(hybrid::checkSpecText(sources, context)))
      module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
    if (!module)
      expectReason("a refusal");
    return module;
  }

  void expectSamePrint(ModuleOp module) {
    std::string first = print(module);
    OwningOpRef<ModuleOp> again = read(first);
    if (!again)
      fail("what was accepted prints as what is not: " + errors + "\n" + first);
    if (std::string second = print(*again); second != first)
      fail("two prints differ:\n" + first + "\n" + second);
  }

  static std::string print(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream);
    return text;
  }

  void expectReason(llvm::StringRef what) {
    if (errors.empty())
      fail((what + " gives no reason").str());
  }

  static void fail(const std::string &why) {
    llvm::errs() << why << "\n";
    std::abort();
  }

  MLIRContext context;
  std::string errors;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static std::unique_ptr<Session> session;
  static unsigned runs = 0;
  if (runs++ % 1000 == 0) {
    session.reset();
    session = std::make_unique<Session>();
  }
  session->tryText({reinterpret_cast<const char *>(data), size});
  return 0;
}
