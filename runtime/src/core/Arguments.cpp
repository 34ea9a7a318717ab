//===- Arguments.cpp -----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Arguments.h"

#include "core/ArenaLayout.h"
#include "core/SharedTensor.h"

#include <algorithm>

namespace hyb::rt {

namespace {

/// What kernels count on; architecture.md section 5.
constexpr uintptr_t kHostAlignment = 64, kDeviceAlignment = kArenaAlignment;

std::string shapeText(const int64_t *sizes, size_t rank) {
  std::string text = "[";
  for (size_t i = 0; i < rank; ++i)
    text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

std::string typeText(hyb_dl_type type) {
  const char *codes[] = {"i", "u", "f"};
  std::string text = type.code == HYB_DL_BFLOAT ? "bf"
                     : type.code <= HYB_DL_FLOAT
                         ? codes[type.code]
                         : "type code " + std::to_string(type.code) + " of ";
  text += std::to_string(type.bits);
  return type.lanes == 1 ? text : text + "x" + std::to_string(type.lanes);
}

std::string deviceText(hyb_dl_device device) {
  switch (device.type) {
  case HYB_DL_CPU:
    return "cpu";
  case HYB_DL_CUDA:
    return "cuda:" + std::to_string(device.index);
  case HYB_DL_CUDA_HOST:
    return "host memory of a GPU's driver";
  default:
    return "device type " + std::to_string(device.type);
  }
}

bool isContiguous(const hyb_dl_tensor &tensor) {
  int64_t expected = 1;
  for (int32_t i = tensor.rank; tensor.strides && i-- > 0;) {
    if (tensor.shape[i] == 0)
      return true;
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected)
      return false;
    expected *= tensor.shape[i];
  }
  return true;
}

std::string namesOf(const PlanEntry &entry) {
  std::string text;
  for (uint32_t index : entry.arguments)
    text += (text.empty() ? "" : ", ") + entry.buffers[index].path;
  return text;
}

/// The address of one argument, with `where` as its role in messages.
Result<void *> checkTensor(const PlanBuffer &buffer, const Symbols &symbols,
                           const Device &device, const hyb_dl_tensor &tensor,
                           const std::string &where) {
  HYB_ASSIGN(std::vector<int64_t> shape, shapeOf(buffer, symbols));
  if (tensor.rank != static_cast<int32_t>(shape.size()) ||
      !std::equal(shape.begin(), shape.end(), tensor.shape))
    return failure(
        HYB_INVALID_ARGUMENT,
        "%s has shape %s, expected %s for %lld tokens in %lld "
        "sequences",
        where.c_str(),
        shapeText(tensor.shape, static_cast<size_t>(std::max(tensor.rank, 0)))
            .c_str(),
        shapeText(shape.data(), shape.size()).c_str(),
        static_cast<long long>(symbols[Symbols::Tokens]),
        static_cast<long long>(symbols[Symbols::Segments]));
  hyb_dl_type expected = elementTypeOf(buffer);
  if (tensor.type.code != expected.code || tensor.type.bits != expected.bits ||
      tensor.type.lanes != expected.lanes)
    return failure(HYB_INVALID_ARGUMENT,
                   "%s has elements of type %s, expected %s; convert them",
                   where.c_str(), typeText(tensor.type).c_str(),
                   typeText(expected).c_str());
  hyb_dl_device ours = device.dlDevice();
  bool isHere = tensor.device.type == ours.type &&
                (device.isHost() || tensor.device.index == ours.index);
  if (device.isHost() && tensor.device.type == HYB_DL_CUDA_HOST)
    isHere = true;
  if (!isHere)
    return failure(HYB_INVALID_ARGUMENT,
                   "%s is on %s, the function runs on %s; move it there",
                   where.c_str(), deviceText(tensor.device).c_str(),
                   device.name());
  if (!isContiguous(tensor))
    return failure(
        HYB_INVALID_ARGUMENT,
        "%s has strides %s for shape %s; give a contiguous tensor",
        where.c_str(),
        shapeText(tensor.strides, static_cast<size_t>(tensor.rank)).c_str(),
        shapeText(tensor.shape, static_cast<size_t>(tensor.rank)).c_str());
  char *address = static_cast<char *>(tensor.data) + tensor.byte_offset;
  bool isEmpty =
      std::find(shape.begin(), shape.end(), int64_t(0)) != shape.end();
  if (!tensor.data && !isEmpty)
    return failure(HYB_INVALID_ARGUMENT, "%s has no data", where.c_str());
  uintptr_t alignment = device.isHost() ? kHostAlignment : kDeviceAlignment;
  uintptr_t rest = reinterpret_cast<uintptr_t>(address) % alignment;
  if (rest != 0 && !isEmpty)
    return failure(HYB_INVALID_ARGUMENT,
                   "%s starts %llu bytes after a multiple of %llu; copy it to "
                   "memory that starts at one",
                   where.c_str(), static_cast<unsigned long long>(rest),
                   static_cast<unsigned long long>(alignment));
  return static_cast<void *>(address);
}

/// Two arguments of which one is written do not overlap.
Status checkApart(const PlanEntry &entry, const Symbols &symbols,
                  const std::vector<void *> &addresses) {
  std::vector<uintptr_t> ends;
  for (size_t i = 0; i < addresses.size(); ++i) {
    HYB_ASSIGN(std::vector<int64_t> shape,
               shapeOf(entry.buffers[entry.arguments[i]], symbols));
    uintptr_t bytes = static_cast<uintptr_t>(
        elementBytes(entry.buffers[entry.arguments[i]].type));
    for (int64_t size : shape)
      bytes *= static_cast<uintptr_t>(size);
    ends.push_back(reinterpret_cast<uintptr_t>(addresses[i]) + bytes);
  }
  for (size_t i = 0; i < addresses.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const PlanBuffer &one = entry.buffers[entry.arguments[j]],
                       &other = entry.buffers[entry.arguments[i]];
      if (other.kind == BufferKind::Output &&
          reinterpret_cast<uintptr_t>(addresses[i]) < ends[j] &&
          reinterpret_cast<uintptr_t>(addresses[j]) < ends[i])
        return failure(HYB_INVALID_ARGUMENT,
                       "output '%s' of '%s' overlaps %s '%s'; give it memory "
                       "of its own",
                       other.path.c_str(), entry.name.c_str(),
                       bufferKindName(one.kind), one.path.c_str());
    }
  return Status();
}

} // namespace

Status checkFunction(const PlanEntry &entry) {
  for (const PlanBuffer &buffer : entry.buffers)
    switch (buffer.kind) {
    case BufferKind::Arena:
    case BufferKind::Param:
    case BufferKind::ParamCopy:
    case BufferKind::Constant:
    case BufferKind::SegmentTable:
    case BufferKind::TokenSegment:
    case BufferKind::Input:
    case BufferKind::Output:
      break;
    default:
      return failure(HYB_UNSUPPORTED,
                     "entry '%s' is a model's: it takes %s beside named "
                     "tensors; use the function of the API for it",
                     entry.name.c_str(), bufferKindName(buffer.kind));
    }
  return Status();
}

Result<Symbols> describeCall(const int64_t *lengths, int64_t segments) {
  Symbols symbols;
  int64_t tokens = 0, longest = 0;
  for (int64_t i = 0; i < segments; ++i) {
    if (lengths[i] < 0 || lengths[i] > INT32_MAX - tokens)
      return failure(HYB_INVALID_ARGUMENT,
                     "sequence %lld has length %lld after %lld tokens; lengths "
                     "must not be negative and sum to at most 2147483647",
                     static_cast<long long>(i),
                     static_cast<long long>(lengths[i]),
                     static_cast<long long>(tokens));
    tokens += lengths[i];
    longest = std::max(longest, lengths[i]);
  }
  symbols[Symbols::Tokens] = tokens;
  symbols[Symbols::Segments] = symbols[Symbols::Slots] = segments;
  symbols[Symbols::Longest] = symbols[Symbols::Context] = longest;
  return symbols;
}

Result<std::vector<int64_t>> shapeOf(const PlanBuffer &buffer,
                                     const Symbols &symbols) {
  std::vector<int64_t> shape;
  for (const Expression &size : buffer.sizes) {
    std::optional<int64_t> value = size.evaluate(symbols);
    if (!value || *value < 0)
      return failure(HYB_OUT_OF_RANGE,
                     "a size of '%s' overflows or is negative for %s",
                     buffer.path.c_str(), symbols.text().c_str());
    shape.push_back(*value);
  }
  return shape;
}

hyb_dl_type elementTypeOf(const PlanBuffer &buffer) {
  return dlTypeOf(buffer.type);
}

Result<std::vector<void *>>
checkArguments(const PlanEntry &entry, const Symbols &symbols,
               const Device &device, const hyb_argument *given, int64_t count) {
  std::vector<void *> addresses(entry.arguments.size());
  std::vector<bool> found(entry.arguments.size());
  for (int64_t i = 0; i < count; ++i) {
    if (!given[i].name || !given[i].tensor)
      return failure(HYB_INVALID_ARGUMENT, "argument %lld has no %s",
                     static_cast<long long>(i),
                     given[i].name ? "tensor" : "name");
    size_t index = 0;
    while (index < found.size() &&
           entry.buffers[entry.arguments[index]].path != given[i].name)
      ++index;
    if (index == found.size() || found[index])
      return failure(HYB_INVALID_ARGUMENT,
                     "'%s' %s argument '%.64s'; its arguments are: %s",
                     entry.name.c_str(),
                     index == found.size() ? "has no" : "is given twice its",
                     given[i].name, namesOf(entry).c_str());
    const PlanBuffer &buffer = entry.buffers[entry.arguments[index]];
    std::string where = std::string(bufferKindName(buffer.kind)) + " '" +
                        buffer.path + "' of '" + entry.name + "'";
    HYB_ASSIGN(addresses[index],
               checkTensor(buffer, symbols, device, *given[i].tensor, where));
    found[index] = true;
  }
  for (size_t i = 0; i < found.size(); ++i)
    if (!found[i])
      return failure(HYB_INVALID_ARGUMENT,
                     "'%s' misses argument '%s'; its arguments are: %s",
                     entry.name.c_str(),
                     entry.buffers[entry.arguments[i]].path.c_str(),
                     namesOf(entry).c_str());
  HYB_TRY(checkApart(entry, symbols, addresses));
  return addresses;
}

} // namespace hyb::rt
