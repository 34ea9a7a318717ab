//===- FakeCublasLt.cpp --------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The symbols of libcublasLt.so that the runtime uses, in the fake driver's
// library. Products are computed on the processor when their stream is waited
// for. What the library would refuse or misread is a complaint: factors that do
// not fit, strides that are too short, alignments that the addresses do not
// have, memory that is not the device's.
//
//===----------------------------------------------------------------------===//

#include "FakeGpu.h"
#include "core/ElementType.h"
#include "cuda/CublasLtApi.h"

#include <cmath>
#include <cstring>

using namespace hyb::rt::cuda::lt;
using hyb::rt::ElementType;
using hyb::test::FakeControl;
using hyb::test::FakeGpu;

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kInvalidValue = 7;

FakeGpu &gpu() { return FakeGpu::instance(); }
FakeControl &control() { return gpu().control; }

struct FakeDescription {
  bool transposed[2] = {};
};
struct FakeMatrix {
  ElementType type;
  uint64_t rows, columns;
  int64_t stride;

  uint64_t bytes() const {
    return ((columns - 1) * static_cast<uint64_t>(stride) + rows) *
           static_cast<uint64_t>(hyb::rt::elementBytes(type));
  }
};
struct FakePreference {
  size_t workspace = 0;
  uint32_t reductions = 7;
  uint32_t alignments[4] = {256, 256, 256, 256};
};
/// What the fake puts into an algorithm.
struct FakeAlgorithm {
  uint64_t magic, sizes[3];
  uint32_t alignments[4];
};
static_assert(sizeof(FakeAlgorithm) <= sizeof(Algorithm));
constexpr uint64_t kMagic = 0x6d687469726f676c;
/// Every algorithm of the fake asks for some of the workspace.
constexpr size_t kWorkspace = 4096;

template <typename Fake, typename Real> Fake &of(Real handle) {
  return *reinterpret_cast<Fake *>(handle);
}
template <typename Fake, typename Real> void make(Real *handle, Fake made) {
  std::lock_guard<std::mutex> guard(gpu().lock);
  ++control().liveProductObjects;
  *handle = reinterpret_cast<Real>(new Fake(made));
}
template <typename Fake, typename Real> int drop(Real handle) {
  std::lock_guard<std::mutex> guard(gpu().lock);
  --control().liveProductObjects;
  delete reinterpret_cast<Fake *>(handle);
  return kSuccess;
}

int complain(const std::string &what) {
  return gpu().complain("products: " + what, kInvalidValue);
}

/// The sizes of a product of columns, or a complaint.
int sizesOf(const FakeDescription &description, const FakeMatrix &a,
            const FakeMatrix &b, const FakeMatrix &c, uint64_t sizes[3]) {
  auto [ta, tb] = description.transposed;
  sizes[0] = ta ? a.columns : a.rows;
  sizes[1] = tb ? b.rows : b.columns;
  sizes[2] = ta ? a.rows : a.columns;
  if ((tb ? b.columns : b.rows) != sizes[2] || c.rows != sizes[0] ||
      c.columns != sizes[1])
    return complain("factors that do not fit");
  for (const FakeMatrix *m : {&a, &b, &c})
    if (m->rows == 0 || m->columns == 0 ||
        m->stride < static_cast<int64_t>(m->rows))
      return complain("a matrix without elements or with a short stride");
  if (a.type != b.type || (c.type != a.type && c.type != ElementType::F32))
    return complain("types that do not go together");
  return kSuccess;
}

void store(const FakeMatrix &matrix, void *data, size_t index, double value) {
  auto rounded = static_cast<float>(value);
  if (matrix.type == ElementType::F32)
    static_cast<float *>(data)[index] = rounded;
  else
    static_cast<uint16_t *>(data)[index] = matrix.type == ElementType::BF16
                                               ? hyb::rt::floatToBf16(rounded)
                                               : hyb::rt::floatToF16(rounded);
}

struct Product {
  FakeDescription description;
  FakeMatrix a, b, c;
  const void *dataA, *dataB;
  void *dataC;
  float alpha, beta;
  uint64_t sizes[3];

  double factor(const FakeMatrix &matrix, const void *data, bool transposed,
                uint64_t row, uint64_t column) const {
    if (transposed)
      std::swap(row, column);
    return static_cast<double>(
        hyb::rt::floatAt(matrix.type, data,
                         static_cast<int64_t>(column) * matrix.stride +
                             static_cast<int64_t>(row)));
  }
  int compute() const {
    ++control().productsRun;
    for (uint64_t j = 0; j < sizes[1]; ++j)
      for (uint64_t i = 0; i < sizes[0]; ++i) {
        double sum = 0;
        for (uint64_t k = 0; k < sizes[2]; ++k)
          sum += factor(a, dataA, description.transposed[0], i, k) *
                 factor(b, dataB, description.transposed[1], k, j);
        auto at = static_cast<int64_t>(j) * c.stride + static_cast<int64_t>(i);
        double before =
            beta == 0
                ? 0
                : static_cast<double>(hyb::rt::floatAt(c.type, dataC, at)) *
                      static_cast<double>(beta);
        store(c, dataC, static_cast<size_t>(at),
              static_cast<double>(alpha) * sum + before);
      }
    return kSuccess;
  }
};

} // namespace

FAKE size_t cublasLtGetVersion() { return 130002; }
FAKE const char *cublasLtGetStatusName(int status) {
  return status == kExecutionFailed ? "CUBLAS_STATUS_EXECUTION_FAILED"
                                    : "CUBLAS_STATUS";
}
FAKE int cublasLtCreate(Handle *handle) {
  make(handle, char());
  return kSuccess;
}
FAKE int cublasLtDestroy(Handle handle) { return drop<char>(handle); }

FAKE int cublasLtMatmulDescCreate(Description *description, int compute,
                                  int scale) {
  // No fewer bits than the compiled products have.
  if (compute != kComputeF32 || scale != kF32)
    return complain("products that are not computed in f32");
  make(description, FakeDescription());
  return kSuccess;
}
FAKE int cublasLtMatmulDescSetAttribute(Description description, int attribute,
                                        const void *value, size_t bytes) {
  int32_t operation = 0;
  if ((attribute != kTransposeA && attribute != kTransposeB) ||
      bytes != sizeof(operation))
    return complain("an unknown attribute of a description");
  std::memcpy(&operation, value, bytes);
  of<FakeDescription>(description).transposed[attribute - kTransposeA] =
      operation == kTransposed;
  return kSuccess;
}
FAKE int cublasLtMatmulDescDestroy(Description description) {
  return drop<FakeDescription>(description);
}

FAKE int cublasLtMatrixLayoutCreate(Matrix *matrix, int type, uint64_t rows,
                                    uint64_t columns, int64_t stride) {
  make(matrix, FakeMatrix{type == kBf16  ? ElementType::BF16
                          : type == kF16 ? ElementType::F16
                                         : ElementType::F32,
                          rows, columns, stride});
  return kSuccess;
}
FAKE int cublasLtMatrixLayoutDestroy(Matrix matrix) {
  return drop<FakeMatrix>(matrix);
}

FAKE int cublasLtMatmulPreferenceCreate(Preference *preference) {
  make(preference, FakePreference());
  return kSuccess;
}
FAKE int cublasLtMatmulPreferenceSetAttribute(Preference preference,
                                              int attribute, const void *value,
                                              size_t bytes) {
  auto &set = of<FakePreference>(preference);
  void *target = attribute == kMaxWorkspaceBytes
                     ? static_cast<void *>(&set.workspace)
                 : attribute == kReductionSchemes ? &set.reductions
                 : attribute >= kAlignmentA && attribute <= kAlignmentD
                     ? &set.alignments[attribute - kAlignmentA]
                     : nullptr;
  if (!target || bytes != (attribute == kMaxWorkspaceBytes ? 8 : 4))
    return complain("an unknown attribute of a preference");
  std::memcpy(target, value, bytes);
  return kSuccess;
}
FAKE int cublasLtMatmulPreferenceDestroy(Preference preference) {
  return drop<FakePreference>(preference);
}

FAKE int cublasLtMatmulAlgoGetHeuristic(Handle, Description description,
                                        Matrix a, Matrix b, Matrix c, Matrix d,
                                        Preference preference, int wanted,
                                        Choice *choices, int *found) {
  std::lock_guard<std::mutex> guard(gpu().lock);
  ++control().choices;
  if (int code = gpu().inject(control().failChoice, kNotSupported))
    return code;
  const auto &set = of<FakePreference>(preference);
  FakeAlgorithm chosen = {kMagic, {}, {}};
  if (c != d || wanted < 1 || set.workspace < kWorkspace ||
      set.reductions != kReduceInComputeType)
    return complain("a preference that is none of ours");
  if (int code = sizesOf(of<FakeDescription>(description), of<FakeMatrix>(a),
                         of<FakeMatrix>(b), of<FakeMatrix>(c), chosen.sizes))
    return code;
  std::memcpy(chosen.alignments, set.alignments, sizeof(chosen.alignments));
  choices[0] = {};
  std::memcpy(&choices[0].algorithm, &chosen, sizeof(chosen));
  choices[0].workspaceBytes = kWorkspace;
  *found = 1;
  return kSuccess;
}

FAKE int cublasLtMatmul(Handle, Description description, const void *alpha,
                        const void *a, Matrix matrixA, const void *b,
                        Matrix matrixB, const void *beta, const void *c,
                        Matrix matrixC, void *d, Matrix matrixD,
                        const Algorithm *algorithm, void *workspace,
                        size_t workspaceBytes, hyb::rt::cuda::Stream stream) {
  std::lock_guard<std::mutex> guard(gpu().lock);
  ++control().productCalls;
  if (int code = gpu().inject(control().failProduct, kExecutionFailed))
    return code;
  Product product = {of<FakeDescription>(description),
                     of<FakeMatrix>(matrixA),
                     of<FakeMatrix>(matrixB),
                     of<FakeMatrix>(matrixC),
                     a,
                     b,
                     d,
                     *static_cast<const float *>(alpha),
                     *static_cast<const float *>(beta),
                     {}};
  FakeAlgorithm chosen;
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  if (c != d || matrixC != matrixD)
    return complain("a result beside what is added to");
  if (int code = sizesOf(product.description, product.a, product.b, product.c,
                         product.sizes))
    return code;
  if (chosen.magic != kMagic ||
      std::memcmp(chosen.sizes, product.sizes, sizeof(chosen.sizes)) != 0)
    return complain("an algorithm for another product");
  auto address = [](const void *data) {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(data));
  };
  const void *places[] = {a, b, c, d};
  for (int n = 0; n < 4; ++n)
    if (address(places[n]) % chosen.alignments[n] != 0)
      return complain("an address that is less aligned than was said");
  if (!gpu().isDevice(address(a), product.a.bytes()) ||
      !gpu().isDevice(address(b), product.b.bytes()) ||
      !gpu().isDevice(address(d), product.c.bytes()) ||
      workspaceBytes < kWorkspace ||
      !gpu().isDevice(address(workspace), workspaceBytes))
    return complain("memory that is not the device's");
  control().productsRecorded += gpu().streams[stream].recorded != nullptr;
  return gpu().enqueue(stream, [=] { return product.compute(); }) == 0
             ? int(kSuccess)
             : int(kExecutionFailed);
}
