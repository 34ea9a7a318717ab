//===- ProgramTest.h - fixture of tests that run tile programs -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_TILE_PROGRAMTEST_H
#define HYBRID_TEST_UNIT_TILE_PROGRAMTEST_H

#include "hybrid/Tile/Interpreter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>
#include <random>

namespace hybrid::tile {

/// A line of a program that holds the elementwise op `name`: `%y` from `%x`
/// (and
/// `%z`, where it takes more), which it defines as constants in (0, 1) or small
/// positive integers.
inline std::string elementwiseBody(llvm::StringRef name) {
  auto body = [&](llvm::StringRef type, const std::string &op) {
    bool isFloat = type == "f32" || type == "f64";
    std::string tile = "tensor<2x" + type.str() + ">";
    std::string x = isFloat        ? "dense<[0.25, 0.75]>"
                    : type == "i1" ? "dense<[true, false]>"
                                   : "dense<[7, 2]>";
    std::string z = isFloat        ? "dense<[0.5, 0.125]>"
                    : type == "i1" ? "dense<[true, true]>"
                                   : "dense<[3, 5]>";
    return "  %x = arith.constant " + x + " : " + tile +
           "\n  %z = arith.constant " + z + " : " + tile +
           "\n  %m = arith.constant dense<[true, false]> : tensor<2xi1>\n  %y "
           "= " +
           op + "\n";
  };
  std::string op = name.str();
  auto cast = [&](llvm::StringRef from, llvm::StringRef to) {
    return body(from, op + " %x : tensor<2x" + from.str() + "> to tensor<2x" +
                          to.str() + ">");
  };
  if (name == "arith.cmpf")
    return body("f32", op + " olt, %x, %z : tensor<2xf32>");
  if (name == "arith.cmpi")
    return body("i32", op + " slt, %x, %z : tensor<2xi32>");
  if (name == "arith.select")
    return body("f32", op + " %m, %x, %z : tensor<2xi1>, tensor<2xf32>");
  if (name == "arith.extf")
    return cast("f32", "f64");
  if (name == "arith.truncf")
    return cast("f64", "f32");
  if (name == "arith.extsi" || name == "arith.extui")
    return cast("i1", "i32");
  if (name == "arith.trunci")
    return cast("i32", "i1");
  if (name == "arith.fptosi")
    return cast("f32", "i32");
  if (name == "arith.sitofp" || name == "arith.uitofp")
    return cast("i32", "f32");
  if (name == "arith.index_cast")
    return "  %x = arith.constant 3 : i32\n  %y = arith.index_cast %x : i32 to "
           "index\n";
  if (name == "math.fma")
    return body("f32", op + " %x, %z, %z : tensor<2xf32>");
  bool unary = name.starts_with("math.") || name == "arith.negf";
  bool isFloat = unary || name.ends_with("f");
  llvm::StringRef type = isFloat ? "f32" : "i32";
  return body(type, op + (unary ? " %x" : " %x, %z") + " : tensor<2x" +
                        type.str() + ">");
}

/// A module of programs, what was reported while they ran, and random data.
class ProgramTest : public testing::Test {
protected:
  static constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

  ProgramTest()
      : handler(&context,
                [this](mlir::Diagnostic &d) { reported += d.str() + "\n"; }) {
    context.loadDialect<TileDialect, mlir::arith::ArithDialect,
                        mlir::math::MathDialect, mlir::scf::SCFDialect,
                        mlir::tensor::TensorDialect>();
    module = mlir::ModuleOp::create(mlir::UnknownLoc::get(&context));
  }

  /// The program in `text`.
  ProgramOp parse(llvm::StringRef text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << reported;
    return module ? *module->getOps<ProgramOp>().begin() : ProgramOp();
  }

  /// A builder at the end of the module.
  mlir::OpBuilder builder() {
    return mlir::OpBuilder::atBlockEnd(module->getBody());
  }

  /// Runs a program that is expected to be right.
  void run(ProgramOp program, llvm::ArrayRef<HostBuffer *> buffers,
           llvm::ArrayRef<int64_t> symbols,
           const InterpreterOptions &options = {}) {
    EXPECT_TRUE(mlir::succeeded(mlir::verify(program))) << reported;
    llvm::SmallVector<HostView> views;
    for (HostBuffer *buffer : buffers)
      views.push_back(buffer->view());
    EXPECT_TRUE(mlir::succeeded(interpret(program, views, symbols, options)))
        << reported;
    for (auto [n, buffer] : llvm::enumerate(buffers))
      EXPECT_TRUE(buffer->tailIsIntact())
          << "argument " << n << " was written past its end";
  }

  HostBuffer random(llvm::ArrayRef<int64_t> sizes, double scale = 1.0) {
    HostBuffer buffer(sizes, 0.0);
    std::normal_distribution<double> normal(0.0, scale);
    for (double &x : buffer.elements())
      x = normal(generator);
    return buffer;
  }

  /// The segment table and the segment of each token for segments of these
  /// lengths, in slots 0, 1, ... at the given first positions (default 0).
  struct SegmentBuffers {
    HostBuffer table, tokenSegment;
    int64_t tokens = 0, longest = 0;
  };
  static SegmentBuffers segments(llvm::ArrayRef<int64_t> lengths,
                                 llvm::ArrayRef<int64_t> first = {}) {
    int64_t total = 0;
    for (int64_t length : lengths)
      total += length;
    SegmentBuffers s{HostBuffer({int64_t(lengths.size()), 4}, 0.0),
                     HostBuffer({total}, 0.0)};
    for (auto [n, length] : llvm::enumerate(lengths)) {
      int64_t row = n;
      s.table({row, 0}) = s.tokens;
      for (int64_t t = 0; t < length; ++t)
        s.tokenSegment({s.tokens++}) = n;
      s.table({row, 1}) = s.tokens;
      s.table({row, 2}) = n;
      s.table({row, 3}) = first.empty() ? 0 : first[n];
      s.longest = std::max(s.longest, length);
    }
    return s;
  }

  /// Largest |a - b|; infinite where only one of them is finite.
  static double distance(const HostBuffer &a, const HostBuffer &b) {
    double worst = 0.0;
    for (auto [x, y] : llvm::zip_equal(a.elements(), b.elements())) {
      if (x == y)
        continue;
      double d = std::fabs(x - y);
      worst = std::isnan(d) ? std::numeric_limits<double>::infinity()
                            : std::max(worst, d);
    }
    return worst;
  }

  mlir::MLIRContext context;
  std::string reported;
  mlir::ScopedDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::mt19937_64 generator{20260130};
};

} // namespace hybrid::tile

#endif // HYBRID_TEST_UNIT_TILE_PROGRAMTEST_H
