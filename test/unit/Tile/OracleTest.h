//===- OracleTest.h - programs of one graph operation against the oracle -===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TEST_UNIT_TILE_ORACLETEST_H
#define HYBRID_TEST_UNIT_TILE_ORACLETEST_H

#include "ProgramTest.h"
#include "hybrid/Hybrid/HybridOps.h"
#include "hybrid/Oracle/Oracle.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace hybrid::tile {

class OracleTest : public ProgramTest {
protected:
  OracleTest() {
    context.loadDialect<HybridDialect, mlir::func::FuncDialect>();
  }

  using Build = llvm::function_ref<mlir::FailureOr<ProgramOp>(
      mlir::OpBuilder &, mlir::Operation *)>;

  /// Evaluates the function in `text`, whose body is one operation of its
  /// arguments in order, with the oracle and with the program that `build`
  /// makes of that operation. Memory past the end of every buffer is NaN.
  void compare(llvm::StringRef text, llvm::ArrayRef<int64_t> lengths,
               Build build, double tolerance = 1e-12,
               llvm::ArrayRef<int64_t> first = {}) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    ASSERT_TRUE(module) << reported;
    auto function = *module->getOps<mlir::func::FuncOp>().begin();
    SegmentBuffers segs = segments(lengths, first);
    oracle::Call call = oracle::Call::packed(lengths);
    for (auto [n, segment] : llvm::enumerate(call.segments))
      segment.position = first.empty() ? 0 : first[n];
    std::vector<HostBuffer> buffers;
    buffers.reserve(function.getNumArguments() + function.getNumResults());
    std::vector<oracle::Tensor> arguments;
    llvm::SmallVector<HostBuffer *> views;
    for (mlir::Type type : function.getArgumentTypes()) {
      arguments.emplace_back();
      if (mlir::isa<SegmentsType>(type)) {
        views.append({&segs.table, &segs.tokenSegment});
        continue;
      }
      buffers.push_back(randomArgument(mlir::cast<mlir::RankedTensorType>(type),
                                       segs.tokens));
      views.push_back(&buffers.back());
      arguments.back() = {
          buffers.back().shape(),
          {buffers.back().elements().begin(), buffers.back().elements().end()}};
    }
    auto expected = oracle::evaluate(function, arguments, call);
    ASSERT_TRUE(mlir::succeeded(expected)) << reported;
    for (auto [n, tensor] : llvm::enumerate(*expected))
      if (llvm::is_contained(summed, int64_t(n)))
        tensor = sumsOfParts(tensor);
    for (const oracle::Tensor &tensor : *expected) {
      buffers.emplace_back(tensor.shape, kNaN);
      views.push_back(&buffers.back());
    }
    mlir::OpBuilder b = builder();
    auto program = build(b, &function.getBody().front().front());
    ASSERT_TRUE(mlir::succeeded(program)) << reported;
    run(*program, views,
        {segs.tokens, int64_t(lengths.size()), segs.longest, 0, 0, 0});
    for (auto [n, tensor] : llvm::enumerate(*expected)) {
      HostBuffer &got = buffers[buffers.size() - expected->size() + n],
                 want(tensor.shape, 0.0);
      llvm::copy(tensor.data, want.elements().begin());
      EXPECT_LE(distance(got, want), tolerance) << "result " << n << " of\n"
                                                << text.str();
    }
  }

  /// Ids and labels are drawn from [0, idLimit), a fifth of them -100 where
  /// labels are ignored.
  int64_t idLimit = 7;
  bool ignoreSome = false;
  /// Results of which a program gives the sums of every `part` rows.
  llvm::SmallVector<int64_t> summed;
  int64_t part = 64;

private:
  oracle::Tensor sumsOfParts(const oracle::Tensor &rows) const {
    oracle::Tensor sums;
    sums.shape = rows.shape;
    sums.shape.front() = (rows.shape.front() + part - 1) / part;
    int64_t width = 1;
    for (int64_t size : llvm::drop_begin(rows.shape))
      width *= size;
    sums.data.assign(sums.shape.front() * width, 0.0);
    for (auto [n, x] : llvm::enumerate(rows.data))
      sums.data[int64_t(n) / (part * width) * width + n % width] += x;
    return sums;
  }

  HostBuffer randomArgument(mlir::RankedTensorType type, int64_t tokens) {
    llvm::SmallVector<int64_t> shape(type.getShape());
    for (int64_t &size : shape)
      size = mlir::ShapedType::isDynamic(size) ? tokens : size;
    HostBuffer buffer = random(shape);
    // What an f32 buffer could hold.
    for (double &x : buffer.elements())
      x = static_cast<float>(x);
    if (type.getElementType().isInteger(32))
      for (double &x : buffer.elements())
        x = ignoreSome && generator() % 5 == 0 ? -100.0
                                               : double(generator() % idLimit);
    return buffer;
  }
};

} // namespace hybrid::tile

#endif // HYBRID_TEST_UNIT_TILE_ORACLETEST_H
