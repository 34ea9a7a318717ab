//===- ProductsTest.cpp - Products by a library on the fake GPU ----------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeHarness.h"

using namespace hyb::rt;
using namespace hyb::test;

namespace {

std::string matrixView(int buffer, const std::string &offset,
                       const std::string &rows, int columns) {
  return "{\"buffer\": " + std::to_string(buffer) + ", \"offset\": " + offset +
         ", \"sizes\": [" + rows + ", " + std::to_string(columns) +
         "], \"strides\": [" + (buffer == 6 ? "4" : "8") + ", 1]}";
}

std::string marked(const std::string &launch, const std::string &product) {
  size_t end = launch.rfind("}]}");
  return launch.substr(0, end) + ", \"product\": {" + product + "}}]}";
}

/// A function of products: y = x wᵀ; dw = xᵀ y + xᵀ x; parts = xᵀ x as a
/// product of parts; half = the right halves of x and of w's lower rows, whose
/// rows begin at multiples of 16 bytes. The code has no kernel that could
/// compute any of them. Last, a kernel that may begin early picks a row of w.
std::string productPlan(const std::string &type = "f32") {
  auto named = [](const std::string &name) {
    return ", \"path\": \"" + name + "\"";
  };
  const std::string rows = "\"tokens\"", whole = "0";
  auto x = matrixView(0, whole, rows, 8), w = matrixView(1, whole, "8", 8),
       y = matrixView(2, whole, rows, 8), dw = matrixView(3, whole, "8", 8),
       sum = matrixView(4, whole, "8", 8);
  std::string parts = R"({"buffer": 5, "offset": 0, "sizes": [4, 8, 8],
                          "strides": [64, 8, 1]})";
  std::string entry = fixtureEntry(
      {fixtureBuffer("input", "\"tokens\", 8", named("x"), type),
       fixtureBuffer("input", "8, 8", named("w"), type),
       fixtureBuffer("output", "\"tokens\", 8", named("y"), type),
       fixtureBuffer("output", "8, 8", named("dw"), type),
       fixtureBuffer("output", "8, 8", named("parts"), type),
       fixtureBuffer("arena", "4, 8, 8", ", \"first\": 3, \"last\": 4"),
       fixtureBuffer("output", "\"tokens\", 4", named("half"), type),
       fixtureBuffer("input", "\"tokens\"", named("which"), "i32"),
       fixtureBuffer("output", "\"tokens\", 8", named("picked"))},
      {marked(fixtureLaunch("project", 0, {x, w, y}),
              R"("a": 0, "b": 1, "c": 2, "transpose_b": true)"),
       marked(fixtureLaunch("gradient", 0, {x, y, dw}),
              R"("a": 0, "b": 1, "c": 2, "transpose_a": true)"),
       marked(fixtureLaunch("more", 0, {x, x, dw}),
              R"("a": 0, "b": 1, "c": 2, "transpose_a": true,
                 "accumulate": true)"),
       fixtureLaunch("split", 0, {x, x, parts}),
       marked(fixtureLaunch("sum", 0, {parts, sum}),
              R"("a": 0, "b": 1, "c": 1, "transpose_a": true, "parts": true)"),
       marked(fixtureLaunch("half", 0,
                            {matrixView(0, "4", rows, 4),
                             matrixView(1, "36", "4", 4),
                             matrixView(6, whole, rows, 4)}),
              R"("a": 0, "b": 1, "c": 2, "transpose_b": true)"),
       fixtureLaunch("pick", 0,
                     {w, fixtureView(7, rows, false), fixtureView(8, rows)})});
  std::string plan = fixturePlan(/*gpu=*/true);
  std::string row = "\"symbol\": \"gather_rows\", ";
  plan.replace(plan.find(row), row.size(), row + "\"overlaps\": true, ");
  size_t at = plan.find("\"pick\": ");
  return plan.substr(0, at) + "\"multiply\": " + entry + ", " + plan.substr(at);
}

using Matrix = std::vector<float>;

/// op(a) op(b) of matrices with so many rows and columns in memory.
Matrix times(const Matrix &a, size_t rowsA, bool ta, const Matrix &b,
             size_t rowsB, bool tb) {
  size_t columnsA = a.size() / rowsA, columnsB = b.size() / rowsB;
  size_t rows = ta ? columnsA : rowsA, depth = ta ? rowsA : columnsA;
  size_t columns = tb ? rowsB : columnsB;
  Matrix c(rows * columns);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      for (size_t k = 0; k < depth; ++k)
        c[i * columns + j] += a[ta ? k * columnsA + i : i * columnsA + k] *
                              b[tb ? j * columnsB + k : k * columnsB + j];
  return c;
}

class Products : public FakeCuda {
protected:
  static constexpr size_t kRows = 5;

  void SetUp() override {
    FakeCuda::SetUp();
    ::setenv("HYBRID_CUBLASLT", HYBRID_FAKE_CUDA_LIBRARY, 1);
    // Small whole numbers: sums are exact in any order.
    for (size_t i = 0; i < kRows * 8; ++i)
      x.push_back(static_cast<float>(i * 7 % 5) - 2.0f);
    for (size_t i = 0; i < 64; ++i)
      w.push_back(static_cast<float>(i * 5 % 7) - 3.0f);
  }
  void TearDown() override {
    outputs.clear();
    context.reset();
    model.reset();
    runtime.reset();
    EXPECT_EQ(gpu->liveProductObjects, 0);
    ::unsetenv("HYBRID_CUBLASLT");
    FakeCuda::TearDown();
  }

  Status load(const std::string &products,
              const std::string &plan = productPlan(), bool prepare = true) {
    hyb_runtime_options options;
    hyb_runtime_options_init(&options, sizeof(options));
    options.threads = 1;
    options.device = "cuda:0";
    options.products = products.c_str();
    HYB_ASSIGN(runtime, Runtime::create(options));
    HYB_ASSIGN(model, open(*runtime, withSection("plan", kFakeChip, plan)));
    hyb_context_options room;
    hyb_context_options_init(&room, sizeof(room));
    room.launch_one_by_one = !prepare;
    HYB_ASSIGN(context, Context::create(*model, room));
    return Status();
  }

  struct Tensor {
    DeviceMemory memory;
    std::vector<int64_t> shape;
    hyb_dl_tensor tensor;
  };
  Tensor &tensor(const std::string &name, std::vector<int64_t> shape,
                 const void *values, uint8_t code = HYB_DL_FLOAT) {
    Tensor &made = outputs[name];
    made.shape = std::move(shape);
    int64_t bytes = 4;
    for (int64_t size : made.shape)
      bytes *= size;
    Device &device = model->device();
    made.memory = std::move(*device.allocate(bytes));
    if (values)
      EXPECT_TRUE(device.write(made.memory.data(), values, bytes).ok());
    made.tensor = {};
    made.tensor.data = made.memory.data();
    made.tensor.device = device.dlDevice();
    made.tensor.rank = static_cast<int32_t>(made.shape.size());
    made.tensor.type = {code, 32, 1};
    made.tensor.shape = made.shape.data();
    return made;
  }
  void makeTensors(int64_t tokens = kRows) {
    std::vector<int32_t> which(static_cast<size_t>(tokens), 3);
    tensor("x", {tokens, 8}, x.data());
    tensor("w", {8, 8}, w.data());
    tensor("y", {tokens, 8}, nullptr);
    tensor("dw", {8, 8}, nullptr);
    tensor("parts", {8, 8}, nullptr);
    tensor("half", {tokens, 4}, nullptr);
    tensor("which", {tokens}, which.data(), HYB_DL_INT);
    tensor("picked", {tokens, 8}, nullptr);
  }
  Status call(int64_t tokens = kRows) {
    std::vector<hyb_argument> arguments;
    for (const auto &[name, given] : outputs)
      arguments.push_back({name.c_str(), &given.tensor});
    return context->call("multiply", arguments.data(),
                         static_cast<int64_t>(arguments.size()), &tokens, 1);
  }
  Matrix read(const std::string &name) {
    const Tensor &from = outputs.at(name);
    Matrix values(static_cast<size_t>(from.memory.bytes() / 4));
    EXPECT_TRUE(
        model->device()
            .read(values.data(), from.memory.data(), from.memory.bytes())
            .ok());
    return values;
  }
  void expectProducts() {
    Matrix y = times(x, kRows, false, w, 8, true);
    EXPECT_EQ(read("y"), y);
    Matrix sum = times(x, kRows, true, x, kRows, false);
    EXPECT_EQ(read("parts"), sum);
    Matrix dw = times(x, kRows, true, y, kRows, false);
    for (size_t i = 0; i < dw.size(); ++i)
      dw[i] += sum[i];
    EXPECT_EQ(read("dw"), dw);
    Matrix right, lower;
    for (size_t i = 0; i < kRows * 8; ++i)
      if (i % 8 >= 4)
        right.push_back(x[i]);
    for (size_t i = 32; i < 64; ++i)
      if (i % 8 >= 4)
        lower.push_back(w[i]);
    EXPECT_EQ(read("half"), times(right, kRows, false, lower, 4, true));
    Matrix picked = read("picked");
    for (size_t i = 0; i < picked.size(); ++i)
      EXPECT_EQ(picked[i], w[24 + i % 8]);
  }

  Matrix x, w;
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<Model> model;
  std::unique_ptr<Context> context;
  std::map<std::string, Tensor> outputs;
};

} // namespace

// The first call launch by launch, then by a graph with the products in it. The
// products have their algorithms from the first call on.
TEST_F(Products, AreComputedByTheLibraryInGraphsToo) {
  Status status = load("cublaslt");
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(model->productNote(), "products: cuBLASLt 13.0.2");
  makeTensors();
  int64_t allocations = 0;
  for (int round = 0; round < 4; ++round) {
    status = call();
    ASSERT_TRUE(status.ok()) << status.message();
    expectProducts();
    if (round == 0)
      allocations = gpu->allocations;
  }
  EXPECT_EQ(gpu->allocations, allocations);
  EXPECT_EQ(gpu->choices, 4) << "two of the five have one shape";
  EXPECT_EQ(gpu->productCalls, 10);
  EXPECT_EQ(gpu->productsRecorded, 5);
  EXPECT_EQ(gpu->productsRun, 20);
  EXPECT_EQ(gpu->graphLaunches, 3);
  EXPECT_EQ(gpu->launches, 4) << "kernels beside the one that picks";
  EXPECT_GE(context->memoryBytes(), int64_t(32) << 20);
}

TEST_F(Products, OfAnotherContextHaveTheSameAlgorithms) {
  ASSERT_TRUE(load("cublaslt", productPlan(), /*prepare=*/false).ok());
  makeTensors();
  for (int round = 0; round < 2; ++round) {
    hyb_context_options room;
    hyb_context_options_init(&room, sizeof(room));
    room.launch_one_by_one = 1;
    auto made = Context::create(*model, room);
    ASSERT_TRUE(made.ok());
    context = std::move(*made);
    ASSERT_TRUE(call().ok());
    expectProducts();
  }
  EXPECT_EQ(gpu->choices, 4);
  EXPECT_EQ(gpu->productsRecorded, 0);
}

// Without rows there are no products, and sums of nothing are a kernel's.
TEST_F(Products, OfNothingAreNotTheLibrarys) {
  ASSERT_TRUE(load("cublaslt",
                   replaced(productPlan(), "\"offset\": 4,", "\"offset\": 0,"))
                  .ok());
  makeTensors(0);
  Status status = call(0);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(gpu->productCalls, 0);
}

//===----------------------------------------------------------------------===//
// Who computes them
//===----------------------------------------------------------------------===//

TEST_F(Products, AreCompiledUnlessAskedFor) {
  ::setenv("HYBRID_CUBLASLT", "/nowhere/libcublasLt.so.13", 1);
  EXPECT_TRUE(load("compiled").ok());
  EXPECT_EQ(model->productNote(), "");
  expectRefused(load("mkl"), HYB_INVALID_ARGUMENT,
                "products by 'mkl' are unknown; give compiled, cublaslt or "
                "auto");
}

TEST_F(Products, AMissingLibraryIsNamed) {
  ::setenv("HYBRID_CUBLASLT", "/nowhere/libcublasLt.so.13", 1);
  expectRefused(load("cublaslt"), HYB_UNSUPPORTED,
                "no cuBLASLt: /nowhere/libcublasLt.so.13: cannot open");
  EXPECT_TRUE(load("auto", productPlan("bf16")).ok());
  EXPECT_NE(model->productNote().find("products: compiled, no cuBLASLt"),
            std::string::npos)
      << model->productNote();
  ::setenv("HYBRID_CUBLASLT", "libm.so.6", 1);
  expectRefused(load("cublaslt"), HYB_UNSUPPORTED,
                "libm.so.6 has no cublasLtGetVersion");
}

TEST_F(Products, AreNotTheProcessors) {
  auto runtimeOf = [&](const char *device) {
    hyb_runtime_options options;
    hyb_runtime_options_init(&options, sizeof(options));
    options.threads = 1;
    options.device = device;
    options.products = "cublaslt";
    return Runtime::create(options);
  };
  auto onProcessor = runtimeOf("cpu");
  ASSERT_TRUE(onProcessor.ok());
  expectRefused(open(**onProcessor, fixtureSections()).status(),
                HYB_UNSUPPORTED,
                "products=cublaslt, but the model runs on the processor: "
                "device=cpu");
  auto automatic = runtimeOf("auto");
  ASSERT_TRUE(automatic.ok());
  expectRefused(open(**automatic, fixtureSections()).status(), HYB_UNSUPPORTED,
                "the model runs on the processor: the artefact holds no GPU "
                "code");
}

TEST_F(Products, ArtefactsWithoutMarksAreRefused) {
  expectRefused(load("cublaslt", fixturePlan(/*gpu=*/true)), HYB_UNSUPPORTED,
                "products=cublaslt, but the plan marks no product");
  EXPECT_TRUE(load("auto", fixturePlan(/*gpu=*/true)).ok());
  EXPECT_EQ(model->productNote(), "products: compiled, the plan marks none");
}

// Kernels with tensor maps are made for exactly this GPU, and those in f32 use
// its tensor cores: automatically they stay, and the library is not even
// opened.
TEST_F(Products, OfTheFasterKernelsStayCompiledAutomatically) {
  std::string row = "\"symbol\": \"gather_rows\", ";
  std::string maps =
      R"("maps": [{"view": 0, "type": "bf16", "box": [8, 64]}], )";
  std::string mapped = replaced(productPlan("bf16"), row, row + maps);
  for (const std::string &plan : {mapped, productPlan("f32")}) {
    ::setenv("HYBRID_CUBLASLT", "/nowhere/libcublasLt.so.13", 1);
    EXPECT_TRUE(load("auto", plan).ok());
    EXPECT_EQ(model->productNote(),
              "products: compiled, they are f32 or of kernels for this GPU");
    expectRefused(load("cublaslt", plan), HYB_UNSUPPORTED, "no cuBLASLt");
  }
  ::setenv("HYBRID_CUBLASLT", HYBRID_FAKE_CUDA_LIBRARY, 1);
  EXPECT_TRUE(load("auto", productPlan("bf16")).ok());
  EXPECT_EQ(model->productNote(), "products: cuBLASLt 13.0.2");
}

//===----------------------------------------------------------------------===//
// What fails
//===----------------------------------------------------------------------===//

TEST_F(Products, WithoutAnAlgorithm) {
  ASSERT_TRUE(load("cublaslt").ok());
  makeTensors();
  gpu->failChoice = 2;
  expectRefused(call(), HYB_UNSUPPORTED,
                "cuda:0: cuBLASLt 13.0.2 has no algorithm for a product of 8 x "
                "8 x 5 in f32; use products=auto or compiled");
  // Nothing of it stays.
  ASSERT_TRUE(call().ok());
  expectProducts();
}

TEST_F(Products, ThatFailAreTold) {
  ASSERT_TRUE(load("cublaslt").ok());
  makeTensors();
  gpu->failProduct = 3;
  expectRefused(call(), HYB_DEVICE,
                "cuda:0: cuBLASLt 13.0.2 cannot run layer 0 more of multiply "
                "(cuBLASLt 13.0.2 product of 8 x 8 x 5 in f32): "
                "CUBLAS_STATUS_EXECUTION_FAILED (13)");
  ASSERT_TRUE(call().ok());
  // While it is recorded: the graph is made again, as one without early edges.
  gpu->failProduct = 2;
  Status status = call();
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(gpu->graphLaunches, 1);
  expectProducts();
}

TEST_F(Products, NoRoomForTheWorkspace) {
  ASSERT_TRUE(load("cublaslt").ok());
  makeTensors();
  gpu->memory = gpu->liveBytes + (int64_t(16) << 20);
  expectRefused(call(), HYB_OUT_OF_MEMORY, "33554432 more bytes are needed");
  gpu->memory = int64_t(1) << 32;
  ASSERT_TRUE(call().ok());
  expectProducts();
}
