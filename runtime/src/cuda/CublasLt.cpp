//===- CublasLt.cpp ------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cuda/CublasLt.h"

#include "core/Plan.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>

namespace hyb::rt::cuda {

//===----------------------------------------------------------------------===//
// Library
//===----------------------------------------------------------------------===//

namespace {
/// The newest first. A library that the process has loaded already, as
/// PyTorch's, is found by its name wherever it lies.
constexpr const char *kLibraries[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

/// 120805 and 130101 are 12.8.5 and 13.1.1.
std::string versionText(size_t version) {
  return std::to_string(version / 10000) + "." +
         std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}
} // namespace

Status CublasLt::resolve() {
  const char *chosen = std::getenv("HYBRID_CUBLASLT");
  std::vector<std::string> paths(std::begin(kLibraries), std::end(kLibraries));
  if (chosen && *chosen)
    paths = {chosen};
  std::string path, reasons;
  for (const std::string &candidate : paths) {
    library = ::dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library) {
      path = candidate;
      break;
    }
    const char *reason = ::dlerror();
    reasons += (reasons.empty() ? "" : "; ") +
               (reason ? std::string(reason).substr(0, 200) : candidate);
  }
  if (!library)
    return failure(HYB_UNSUPPORTED,
                   "no cuBLASLt: %s; install cuBLAS 12 or 13 and put its "
                   "folder into LD_LIBRARY_PATH, or use products=compiled",
                   reasons.c_str());
#define HYB_CUBLASLT_RESOLVE(name, symbol, result, arguments)                  \
  name = reinterpret_cast<decltype(name)>(::dlsym(library, symbol));           \
  if (!name)                                                                   \
    return failure(HYB_UNSUPPORTED,                                            \
                   "library %.200s has no %s: cuBLASLt 12 or 13 is needed; "   \
                   "install it, or use products=compiled",                     \
                   path.c_str(), symbol);
  HYB_CUBLASLT_FUNCTIONS(HYB_CUBLASLT_RESOLVE)
#undef HYB_CUBLASLT_RESOLVE
  return Status();
}

Result<std::shared_ptr<const CublasLt>>
CublasLt::open(std::shared_ptr<CudaContext> context) {
  auto result = std::make_shared<CublasLt>();
  result->place = std::move(context);
  HYB_TRY(result->resolve());
  result->label = "cuBLASLt " + versionText(result->version());
  ContextScope scope(*result->place);
  HYB_TRY(scope.status());
  HYB_TRY(result->check(result->create(&result->owned), "start"));
  return std::shared_ptr<const CublasLt>(std::move(result));
}

CublasLt::~CublasLt() {
  if (owned) {
    ContextScope scope(*place);
    destroy(owned);
  }
  if (library)
    ::dlclose(library);
}

Status CublasLt::check(int code, const std::string &action) const {
  if (code == lt::kSuccess)
    return Status();
  const char *text = statusName(code);
  return failure(HYB_DEVICE,
                 "%s: %s cannot %s: %s (%d); with products=compiled it is not "
                 "used",
                 place->name().c_str(), label.c_str(), action.c_str(),
                 text ? text : "unknown status", code);
}

//===----------------------------------------------------------------------===//
// Product
//===----------------------------------------------------------------------===//

static int dataType(ElementType type) {
  return type == ElementType::BF16  ? lt::kBf16
         : type == ElementType::F16 ? lt::kF16
                                    : lt::kF32;
}

CublasLtProduct::CublasLtProduct(std::shared_ptr<const CublasLt> library,
                                 const ProductShape &shape)
    : LibraryProduct(library->title() + " product of " + shape.text()),
      owner(std::move(library)), accumulate(shape.accumulate) {}

CublasLtProduct::~CublasLtProduct() {
  for (lt::Matrix matrix : {first, second, result})
    if (matrix)
      owner->matrixDestroy(matrix);
  if (description)
    owner->descriptionDestroy(description);
}

// What lies row by row is for the library the transposed matrix by columns, and
// c = a b is c^T = b^T a^T. So factors change places and nothing is transposed
// that was not before.
Status CublasLtProduct::describe(const ProductShape &shape) {
  auto check = [&](int code) {
    return owner->check(code, "describe a " + name);
  };
  HYB_TRY(check(owner->descriptionCreate(&description, lt::kComputeF32,
                                         dataType(ElementType::F32))));
  for (auto [attribute, transposed] :
       {std::pair{lt::kTransposeA, shape.transposeB},
        {lt::kTransposeB, shape.transposeA}}) {
    int32_t value = transposed ? lt::kTransposed : lt::kAsIs;
    HYB_TRY(check(
        owner->descriptionSet(description, attribute, &value, sizeof(value))));
  }
  struct Rows {
    lt::Matrix *matrix;
    ElementType type;
    int64_t rows, columns, stride;
  };
  auto matrix = [](lt::Matrix *made, ElementType type, bool transposed,
                   int64_t rows, int64_t columns, int64_t stride) {
    return transposed ? Rows{made, type, columns, rows, stride}
                      : Rows{made, type, rows, columns, stride};
  };
  for (const Rows &ours : {matrix(&first, shape.type, shape.transposeB,
                                  shape.depth, shape.columns, shape.strideB),
                           matrix(&second, shape.type, shape.transposeA,
                                  shape.rows, shape.depth, shape.strideA),
                           matrix(&result, shape.resultType, false, shape.rows,
                                  shape.columns, shape.strideC)})
    // The stride of a single row may be anything.
    HYB_TRY(check(owner->matrixCreate(ours.matrix, dataType(ours.type),
                                      static_cast<uint64_t>(ours.columns),
                                      static_cast<uint64_t>(ours.rows),
                                      std::max(ours.stride, ours.columns))));
  return Status();
}

Result<bool> CublasLtProduct::chooseAlgorithm(const ProductShape &shape) {
  const std::string action = "choose an algorithm for a " + name;
  lt::Preference preference = nullptr;
  HYB_TRY(owner->check(owner->preferenceCreate(&preference), action));
  size_t workspace = CublasLt::kWorkspaceBytes;
  int code = owner->preferenceSet(preference, lt::kMaxWorkspaceBytes,
                                  &workspace, sizeof(workspace));
  for (auto [attribute, value] :
       {std::pair{lt::kReductionSchemes, uint32_t(lt::kReduceInComputeType)},
        {lt::kAlignmentA, static_cast<uint32_t>(shape.alignB)},
        {lt::kAlignmentB, static_cast<uint32_t>(shape.alignA)},
        {lt::kAlignmentC, static_cast<uint32_t>(shape.alignC)},
        {lt::kAlignmentD, static_cast<uint32_t>(shape.alignC)}})
    if (code == lt::kSuccess)
      code = owner->preferenceSet(preference, attribute, &value, sizeof(value));
  lt::Choice choice = {};
  int found = 0;
  if (code == lt::kSuccess)
    code = owner->choose(owner->handle(), description, first, second, result,
                         result, preference, 1, &choice, &found);
  owner->preferenceDestroy(preference);
  if (code == lt::kNotSupported)
    return false;
  HYB_TRY(owner->check(code, action));
  algorithm = choice.algorithm;
  return found > 0 && choice.status == lt::kSuccess &&
         choice.workspaceBytes <= workspace;
}

Result<std::shared_ptr<const CublasLtProduct>>
CublasLtProduct::create(std::shared_ptr<const CublasLt> library,
                        const ProductShape &shape) {
  ContextScope scope(library->context());
  HYB_TRY(scope.status());
  std::shared_ptr<CublasLtProduct> product(
      new CublasLtProduct(std::move(library), shape));
  HYB_TRY(product->describe(shape));
  HYB_ASSIGN(bool found, product->chooseAlgorithm(shape));
  if (!found)
    product = nullptr;
  return std::shared_ptr<const CublasLtProduct>(std::move(product));
}

int CublasLtProduct::run(const KernelView *views, void *workspace,
                         Stream stream) const {
  const float one = 1.0f, before = accumulate ? 1.0f : 0.0f;
  const KernelView &a = views[0], &b = views[1], &c = views[2];
  return owner->multiply(owner->handle(), description, &one, b.base, first,
                         a.base, second, &before, c.base, result, c.base,
                         result, &algorithm, workspace,
                         CublasLt::kWorkspaceBytes, stream);
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

bool CublasLtProducts::mayCompute(const PlanKernel &kernel, ElementType type,
                                  ProductChoice wanted) {
  return wanted == ProductChoice::Library ||
         (wanted == ProductChoice::Automatic && kernel.maps.empty() &&
          type != ElementType::F32);
}

Result<std::shared_ptr<const LibraryProduct>>
CublasLtProducts::choose(const PlanKernel &kernel, const ProductShape &shape) {
  // Without depth a product is zeros, which the library does not take.
  if (!mayCompute(kernel, shape.type, wanted) || shape.rows == 0 ||
      shape.columns == 0 || shape.depth == 0)
    return std::shared_ptr<const LibraryProduct>();
  std::lock_guard<std::mutex> lock(turn);
  auto it = known.find(shape);
  if (it != known.end())
    return it->second;
  HYB_ASSIGN(std::shared_ptr<const LibraryProduct> made,
             CublasLtProduct::create(library, shape));
  if (!made && wanted == ProductChoice::Library)
    return failure(HYB_UNSUPPORTED,
                   "%s: %s has no algorithm for a product of %s; use "
                   "products=auto or compiled",
                   library->context().name().c_str(), library->title().c_str(),
                   shape.text().c_str());
  // Launch lists hold what they use.
  if (known.size() == kMostShapes)
    known.clear();
  known.emplace(shape, made);
  return made;
}

} // namespace hyb::rt::cuda
