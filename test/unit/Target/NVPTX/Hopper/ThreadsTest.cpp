//===- ThreadsTest.cpp - lowered kernels, thread by thread ----------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The code of one thread, run by the 128 threads of a warpgroup in step: where
// ids come from, which registers hold what, the exchange before wide stores,
// and the addresses of stores.
//
//===----------------------------------------------------------------------===//

#include "Interpreter.h"

#include "../../../Tile/ProgramTest.h"
#include "hybrid/Target/NVPTX/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;

namespace {

constexpr int64_t kThreads = 128, kParameters = 4096;

struct Cell {
  double number = 0;
  std::vector<int64_t> words;
};
using Lanes = std::vector<Cell>;
using Mask = std::vector<bool>;

class Threads {
public:
  std::map<int64_t, uint16_t> memory; // 16 bits that were stored, by address
  std::map<int64_t, double> numbers;  // the same of f32
  std::map<int64_t, int64_t> parameters;
  int64_t block = 0, blocks = 1;
  bool storesNumbers = false; // f32, else 16 bits
  std::string unknown;

  void run(func::FuncOp function) {
    values[function.getArgument(0)] = same(kParameters);
    run(function.getBody().front(), Mask(kThreads, true));
  }

private:
  Lanes same(double number) { return Lanes(kThreads, Cell{number, {}}); }

  void run(mlir::Block &ops, const Mask &mask) {
    for (Operation &op : ops)
      if (!op.hasTrait<OpTrait::IsTerminator>())
        run(&op, mask);
  }

  void run(Operation *op, const Mask &mask) {
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (bool wanted : {true, false}) {
        Region &region =
            wanted ? branch.getThenRegion() : branch.getElseRegion();
        Mask inside = mask;
        for (int64_t t = 0; t < kThreads; ++t)
          inside[t] = mask[t] &&
                      (values[branch.getCondition()][t].number != 0) == wanted;
        if (!region.empty())
          run(region.front(), inside);
      }
      return;
    }
    // Bounds are the same in all threads.
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      auto bound = [&](Value value) { return at(value, 0).number; };
      for (double task = bound(loop.getLowerBound());
           task < bound(loop.getUpperBound()); task += bound(loop.getStep())) {
        values[loop.getInductionVar()] = same(task);
        run(*loop.getBody(), mask);
      }
      return;
    }
    Lanes result(kThreads);
    for (int64_t t = 0; t < kThreads; ++t)
      if (mask[t])
        result[t] = compute(op, t);
    if (op->getNumResults() == 1)
      values[op->getResult(0)] = result;
  }

  Cell at(Value value, int64_t thread) { return values[value][thread]; }

  Cell compute(Operation *op, int64_t t) {
    auto number = [&](unsigned n) { return at(op->getOperand(n), t).number; };
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (auto integer = dyn_cast<IntegerAttr>(constant.getValue()))
        return {double(integer.getValue().getSExtValue()), {}};
      return {cast<FloatAttr>(constant.getValue()).getValueAsDouble(), {}};
    }
    if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
      return intrinsic(call, t);
    if (auto text = dyn_cast<LLVM::InlineAsmOp>(op))
      return assembly(text, t);
    if (auto step = dyn_cast<LLVM::GEPOp>(op)) {
      double bytes = step.getDynamicIndices().empty()
                         ? double(step.getRawConstantIndices()[0])
                         : at(step.getDynamicIndices()[0], t).number;
      return {at(step.getBase(), t).number + bytes, {}};
    }
    if (auto load = dyn_cast<LLVM::LoadOp>(op))
      return {double(parameters[int64_t(number(0)) - kParameters]), {}};
    if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
      Cell value = at(store.getValue(), t);
      put(int64_t(at(store.getAddr(), t).number), value.words);
      return {};
    }
    if (isa<LLVM::UndefOp>(op))
      return {0, std::vector<int64_t>(4)};
    if (auto insert = dyn_cast<LLVM::InsertElementOp>(op)) {
      Cell cell = at(insert.getVector(), t);
      cell.words[size_t(at(insert.getPosition(), t).number)] =
          int64_t(at(insert.getValue(), t).number);
      return cell;
    }
    if (auto field = dyn_cast<LLVM::ExtractValueOp>(op)) {
      Cell cell = at(field.getContainer(), t);
      return {double(cell.words[size_t(field.getPosition()[0])]), {}};
    }
    if (isa<LLVM::AddressOfOp>(op))
      return {0, {}};
    StringRef name = op->getName().getStringRef();
    if (name == "arith.shrui")
      return {double(uint64_t(number(0)) >> int64_t(number(1))), {}};
    if (name == "arith.ori")
      return {double(int64_t(number(0)) | int64_t(number(1))), {}};
    if (name == "arith.trunci" && op->getResult(0).getType().isInteger(16))
      return {double(int64_t(number(0)) & 0xffff), {}};
    if (isa<LLVM::AddrSpaceCastOp, LLVM::PtrToIntOp, LLVM::BitcastOp>(op) ||
        name == "arith.bitcast" || name == "arith.extui" ||
        name == "arith.extsi" || name == "arith.trunci" ||
        name == "arith.sitofp")
      return {number(0), {}};
    SmallVector<double> operands;
    for (unsigned n = 0; n < op->getNumOperands(); ++n)
      operands.push_back(number(n));
    std::optional<double> value = sim::evaluate(op, operands);
    if (!value)
      unknown = name.str();
    return {value.value_or(0), {}};
  }

  Cell intrinsic(LLVM::CallIntrinsicOp call, int64_t t) {
    StringRef name = call.getIntrin();
    if (name.ends_with("tid.x") && !name.ends_with("ctaid.x"))
      return {double(t), {}};
    if (name.ends_with("nctaid.x"))
      return {double(blocks), {}};
    if (name.ends_with("ctaid.x"))
      return {double(block), {}};
    if (name.contains("shfl.sync.bfly")) {
      int64_t from = t ^ int64_t(at(call.getArgs()[2], t).number);
      return at(call.getArgs()[1], from);
    }
    if (name.contains("shfl.sync.idx"))
      return at(call.getArgs()[1], t / 32 * 32);
    if (!name.contains("barrier"))
      unknown = name.str();
    return {};
  }

  Cell assembly(LLVM::InlineAsmOp text, int64_t t) {
    StringRef words = text.getAsmString();
    auto operand = [&](unsigned n) {
      return at(text.getOperands()[n], t).number;
    };
    if (words.starts_with("cvt.rn.bf16x2")) {
      Type half = BFloat16Type::get(text.getContext());
      int64_t high = sim::encode(half, operand(0)),
              low = sim::encode(half, operand(1));
      return {double(high << 16 | low), {}};
    }
    if (words.contains("@p st.global.b16")) {
      if (operand(1) != 0)
        memory[int64_t(operand(0))] = uint16_t(operand(2));
      return {};
    }
    int64_t count = words.contains(".v4.b32") ? 4
                    : words.contains(".b32")  ? 1
                                              : 0;
    if (count && words.contains("@p st.global")) {
      std::vector<int64_t> stored;
      for (int64_t n = 0; n < count; ++n) {
        stored.push_back(int64_t(operand(2 + n)));
        if (storesNumbers && operand(1) != 0)
          numbers[int64_t(operand(0)) + 4 * n] = operand(2 + n);
      }
      EXPECT_EQ(int64_t(operand(0)) % (4 * count), 0);
      // The type of the elements is not in the text.
      if (!storesNumbers && operand(1) != 0)
        put(int64_t(operand(0)), stored);
      return {};
    }
    if (count && words.contains("@p ld.global")) {
      Cell cell;
      for (int64_t n = 0; n < count; ++n)
        cell.words.push_back(
            operand(1) == 0 ? 0
                            : int64_t(numbers.at(int64_t(operand(0)) + 4 * n)));
      cell.number = double(cell.words[0]);
      return cell;
    }
    if (!words.starts_with("fence"))
      unknown = words.str();
    return {};
  }

  void put(int64_t address, const std::vector<int64_t> &words) {
    EXPECT_EQ(address % 16, 0);
    for (int64_t word : words) {
      memory[address] = uint16_t(word);
      memory[address + 2] = uint16_t(word >> 16);
      address += 4;
    }
  }

  llvm::DenseMap<Value, Lanes> values;
};

class HopperThreads : public tile::ProgramTest {
protected:
  /// What is stored, the columns that are not past the limit, and how.
  struct Form {
    std::string element = "bf16";
    int64_t columns = 64;
    std::string op = "store";
    /// Blocks that take all points between them; 0: one per point.
    int64_t blocks = 0;
  };
  /// A kernel that stores, per tile of 64 rows, an expression of row %r and
  /// column %c of the tile.
  void store(StringRef expression, int64_t rows, int64_t base) {
    store(expression, rows, base, Form());
  }
  void store(StringRef expression, int64_t rows, int64_t base,
             const Form &form) {
    context.loadDialect<HopperDialect, LLVM::LLVMDialect, func::FuncDialect>();
    bool isHalf = form.element != "f32", isCut = form.columns < 64;
    std::string value = isHalf
                            ? "    %y = arith.truncf %f : tensor<64x64xf32> to "
                              "tensor<64x64xbf16>\n"
                            : "",
                limit = isCut ? ", %end" : "", begin, of, end;
    if (form.blocks) {
      begin = R"(    %first = hopper.block
    %step = hopper.blocks
    %tasks = hopper.tasks
    scf.for %task = %first to %tasks step %step {
)";
      of = " of %task";
      end = "    }";
    }
    std::string text = "!view = !tile.view<?x3x64x" + form.element + R"(>
hopper.kernel @k(%o: !view)
    grid affine_map<()[t, s, l, n, c, d] -> (t ceildiv 64, 3)>
    traversal [1, 0] descending [1] group 2 {
  hopper.roles [1] [168] [false] {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
)" + begin + "    %i = hopper.id 0" +
                       of + "\n    %h = hopper.id 1" + of + R"(
    %row = arith.muli %i, %c64 : index
    %end = arith.constant )" +
                       std::to_string(form.columns) + R"( : index
    %rows = tile.dim %o, 0 : !view
    %r = tile.iota dim 0 : tensor<64x64xi32>
    %c = tile.iota dim 1 : tensor<64x64xi32>
    %three = arith.constant dense<3> : tensor<64x64xi32>
    %many = arith.constant dense<64> : tensor<64x64xi32>
)" + expression.str() + R"(
    %f = arith.sitofp %x : tensor<64x64xi32> to tensor<64x64xf32>
)" + value + "    tile." +
                       form.op + (isHalf ? " %y" : " %f") +
                       R"(, %o[%row, %h, %c0] dims [0, 2] limit(%rows)" +
                       limit + ") : tensor<64x64x" + form.element +
                       ">, !view\n" + end + R"(
    hopper.yield
  }
})";
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << reported;
    auto kernel = *module->getOps<KernelOp>().begin();
    int64_t sizes[] = {(rows + 63) / 64, 3};
    std::set<std::pair<int64_t, int64_t>> points;
    for (int64_t task = 0; task < sizes[0] * sizes[1]; ++task) {
      auto point = sim::pointOf(kernel, sizes, task);
      points.insert({point[0], point[1]});
    }
    EXPECT_EQ(int64_t(points.size()), sizes[0] * sizes[1]);
    PassManager passes(&context);
    passes.addPass(createHybridHopperLowerKernels());
    ASSERT_TRUE(succeeded(passes.run(*module))) << reported;
    threads.parameters = {{0, base}, {8, rows},      {16, 3},
                          {24, 64},  {40, 192},      {48, 64},
                          {56, 1},   {72, sizes[0]}, {80, sizes[1]}};
    threads.storesNumbers = !isHalf;
    threads.blocks = form.blocks ? form.blocks : sizes[0] * sizes[1];
    for (int64_t block = 0; block < threads.blocks; ++block) {
      threads.block = block;
      threads.run(*module->getOps<func::FuncOp>().begin());
    }
    ASSERT_EQ(threads.unknown, "");
  }
  void expect(int64_t rows, int64_t base,
              llvm::function_ref<int64_t(int64_t, int64_t)> wanted) {
    // All rows of the view, and nothing else.
    EXPECT_EQ(int64_t(threads.memory.size()), rows * 3 * 64);
    Type half = BFloat16Type::get(&context);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t head = 0; head < 3; ++head)
        for (int64_t column = 0; column < 64; ++column) {
          auto found =
              threads.memory.find(base + 2 * (row * 192 + head * 64 + column));
          ASSERT_NE(found, threads.memory.end()) << row << ", " << column;
          ASSERT_EQ(sim::decode(half, found->second),
                    double(wanted(row % 64, column)))
              << "row " << row << " head " << head << " column " << column;
        }
  }

  /// The same of f32, of the columns up to a limit.
  void expectNumbers(int64_t rows, int64_t base, int64_t columns,
                     llvm::function_ref<double(int64_t, int64_t)> wanted) {
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t head = 0; head < 3; ++head)
        for (int64_t column = 0; column < 64; ++column) {
          auto found =
              threads.numbers.find(base + 4 * (row * 192 + head * 64 + column));
          ASSERT_EQ(found != threads.numbers.end(), column < columns)
              << row << ", " << column;
          if (column < columns)
            ASSERT_EQ(found->second, wanted(row % 64, column))
                << "row " << row << " column " << column;
        }
  }

  Threads threads;
};

constexpr StringRef kColumns = R"(
    %low = arith.andi %r, %three : tensor<64x64xi32>
    %part = arith.muli %low, %many : tensor<64x64xi32>
    %x = arith.addi %part, %c : tensor<64x64xi32>)";
constexpr StringRef kRowNumbers = R"(
    %x = arith.addi %r, %r : tensor<64x64xi32>)";

} // namespace

// Every grid point is stored by one block, every element by its thread.
TEST_F(HopperThreads, WideStores) {
  for (int64_t rows : {64, 150}) {
    threads = Threads();
    store(kColumns, rows, 1 << 20);
    expect(rows, 1 << 20, [](int64_t r, int64_t c) { return r % 4 * 64 + c; });
    threads = Threads();
    store(kRowNumbers, rows, 1 << 20);
    expect(rows, 1 << 20, [](int64_t r, int64_t) { return 2 * r; });
  }
}

// What does not begin at 16 bytes is stored one by one.
TEST_F(HopperThreads, NarrowStores) {
  store(kColumns, 100, (1 << 20) + 2);
  expect(100, (1 << 20) + 2,
         [](int64_t r, int64_t c) { return r % 4 * 64 + c; });
}

// A limit that cuts no piece of 16 bytes keeps wide stores.
TEST_F(HopperThreads, WideStoresUpToAColumn) {
  for (int64_t columns : {40, 41}) {
    threads = Threads();
    store(kColumns, 70, 1 << 20, {"bf16", columns, "store"});
    EXPECT_EQ(int64_t(threads.memory.size()), 70 * 3 * columns);
    for (auto [address, bits] : threads.memory) {
      int64_t place = (address - (1 << 20)) / 2, column = place % 64;
      ASSERT_LT(column, columns);
      ASSERT_EQ(sim::decode(BFloat16Type::get(&context), bits),
                double(place / 192 % 64 % 4 * 64 + column));
    }
  }
}

// f32 goes in fours, half of them another lane's, or one by one.
TEST_F(HopperThreads, FoursOfNumbers) {
  for (int64_t columns : {64, 52, 50, 49})
    for (int64_t base : {1 << 20, (1 << 20) + 4}) {
      threads = Threads();
      store(kColumns, 70, base, {"f32", columns, "store"});
      expectNumbers(70, base, columns, [](int64_t r, int64_t c) {
        return double(r % 4 * 64 + c);
      });
    }
}

TEST_F(HopperThreads, SumsAreAddedToWhatIsThere) {
  for (int64_t columns : {64, 52, 49}) {
    threads = Threads();
    for (int64_t row = 0; row < 70; ++row)
      for (int64_t head = 0; head < 3; ++head)
        for (int64_t column = 0; column < columns; ++column)
          threads.numbers[(1 << 20) + 4 * (row * 192 + head * 64 + column)] =
              1000;
    store(kColumns, 70, 1 << 20, {"f32", columns, "accumulate"});
    expectNumbers(70, 1 << 20, columns, [](int64_t r, int64_t c) {
      return double(1000 + r % 4 * 64 + c);
    });
  }
}

// Fewer blocks than points: every point is stored by one of them.
TEST_F(HopperThreads, PointsOfAPersistentKernel) {
  for (int64_t blocks : {1, 2, 4}) {
    threads = Threads();
    store(kColumns, 150, 1 << 20, {"bf16", 64, "store", blocks});
    expect(150, 1 << 20, [](int64_t r, int64_t c) { return r % 4 * 64 + c; });
  }
}
