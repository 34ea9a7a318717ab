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

/// A program that stores the elementwise op `name` of constants that it is
/// defined for, as two f32.
inline std::string elementwiseProgram(llvm::StringRef name) {
  auto tile = [](llvm::StringRef type) {
    return "tensor<2x" + type.str() + ">";
  };
  auto constant = [&](llvm::StringRef value, llvm::StringRef type) {
    return " = arith.constant dense<" + value.str() + "> : " + tile(type) +
           "\n";
  };
  // Operand and result type, and what stands behind the name.
  llvm::StringRef from = "f32", to;
  std::string rest;
  auto cast = [&](llvm::StringRef a, llvm::StringRef b) {
    from = a;
    to = b;
    rest = " %x : " + tile(a) + " to " + tile(b);
  };
  if (name == "arith.cmpf" || name == "arith.cmpi") {
    from = name.ends_with("f") ? "f32" : "i32";
    to = "i1";
    rest = (name.ends_with("f") ? " olt" : " slt") +
           std::string(", %x, %z : ") + tile(from);
  } else if (name == "arith.select") {
    rest = " %m, %x, %z : tensor<2xi1>, tensor<2xf32>";
  } else if (name == "arith.extf") {
    cast("f32", "f64");
  } else if (name == "arith.truncf") {
    cast("f64", "f32");
  } else if (name == "arith.extsi" || name == "arith.extui") {
    cast("i1", "i32");
  } else if (name == "arith.trunci") {
    cast("i32", "i1");
  } else if (name == "arith.fptosi") {
    cast("f32", "i32");
  } else if (name == "arith.sitofp" || name == "arith.uitofp") {
    cast("i32", "f32");
  } else if (name == "arith.index_cast") {
    from = to = "i32";
    rest = " %i : index to i32\n  %y = tile.splat %s : tensor<2xi32>";
  } else if (name == "math.fma") {
    rest = " %x, %z, %z : tensor<2xf32>";
  } else {
    bool unary = name.starts_with("math.") || name == "arith.negf";
    from = unary || name.ends_with("f") ? "f32" : "i32";
    rest = std::string(unary ? " %x" : " %x, %z") + " : " + tile(from);
  }
  if (to.empty())
    to = from;
  bool isFloat = from == "f32" || from == "f64";
  llvm::StringRef x = isFloat        ? "[0.25, 0.75]"
                      : from == "i1" ? "[true, false]"
                                     : "[7, 2]";
  llvm::StringRef z = isFloat        ? "[0.5, 0.125]"
                      : from == "i1" ? "[true, true]"
                                     : "[3, 5]";
  std::string stored = "%y", convert;
  if (to != "f32") {
    convert = "  %f = arith." +
              std::string(to == "f64"  ? "truncf"
                          : to == "i1" ? "uitofp"
                                       : "sitofp") +
              " %y : " + tile(to) + " to tensor<2xf32>\n";
    stored = "%f";
  }
  return "tile.program @p(%out: !tile.view<2xf32>)\n    grid affine_map<()[t, "
         "s, "
         "l, n, c, d] -> (t)> order [parallel] {\n"
         "  %i = arith.constant 0 : index\n  %x" +
         constant(x, from) + "  %z" + constant(z, from) + "  %m" +
         constant("[true, false]", "i1") +
         (name == "arith.index_cast" ? "  %s = " : "  %y = ") + name.str() +
         rest + "\n" + convert + "  tile.store " + stored +
         ", %out[%i] dims [0] : tensor<2xf32>, !tile.view<2xf32>\n"
         "  tile.return\n}\n";
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
