//===- FiniteCheck.cpp ----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/FiniteCheck.h"

#include <cmath>

namespace hyb::rt {

namespace {
/// From the first to the last element of a view.
int64_t bytesOf(const KernelView &view, int32_t rank, ElementType type) {
  int64_t last = 0;
  for (int32_t d = 0; d < rank; ++d) {
    if (view.sizes[d] == 0)
      return 0;
    last += (view.sizes[d] - 1) * view.strides[d];
  }
  return (last + 1) * elementBytes(type);
}

/// Buffers whose content a caller answers for.
bool isGiven(BufferKind kind) {
  switch (kind) {
  case BufferKind::Param:
  case BufferKind::ParamCopy:
  case BufferKind::Gradient:
  case BufferKind::State:
  case BufferKind::Weights:
  case BufferKind::Moment1:
  case BufferKind::Moment2:
  case BufferKind::Input:
    return true;
  default:
    return false;
  }
}

/// A number that is none, and where it is in its view.
struct Finding {
  float value;
  std::string index; // "[3, 0, 17]"
};

std::optional<Finding> firstBad(const hyb_launch_view &view) {
  int64_t count = 1, index[kMaxViewRank] = {};
  for (int32_t d = 0; d < view.rank; ++d)
    count *= view.sizes[d];
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (int32_t d = 0; d < view.rank; ++d)
      offset += index[d] * view.strides[d];
    float value =
        floatAt(static_cast<ElementType>(view.type), view.data, offset);
    if (std::isnan(value) || value == HUGE_VALF) {
      std::string text = "[";
      for (int32_t d = 0; d < view.rank; ++d)
        text += (d ? ", " : "") + std::to_string(index[d]);
      return Finding{value, text + "]"};
    }
    for (int32_t d = view.rank; d-- > 0;) {
      if (++index[d] < view.sizes[d])
        break;
      index[d] = 0;
    }
  }
  return std::nullopt;
}

const char *nameOf(float value) {
  return std::isnan(value) ? "NaN" : "infinity";
}

/// "parameter layers.0.mixer.q_proj.weight", "gradient".
std::string describe(const PlanBuffer &buffer) {
  std::string kind =
      buffer.kind == BufferKind::Param || buffer.kind == BufferKind::ParamCopy
          ? "parameter"
          : bufferKindName(buffer.kind);
  return buffer.path.empty() ? kind : kind + " " + buffer.path;
}
} // namespace

Result<LaunchViews> LaunchViews::of(const Device &device,
                                    const PlanInstance &instance,
                                    size_t launch) {
  const KernelView *given = instance.launches()[launch].views;
  LaunchViews result;
  for (size_t v = 0; v < instance.launches()[launch].viewCount; ++v) {
    const PlanView &view = instance.planView(launch, v);
    auto rank = static_cast<int32_t>(view.sizes.size());
    ElementType type = instance.entry().buffers[view.buffer].type;
    HYB_ASSIGN(HostView copy, HostView::of(device, given[v].base,
                                           bytesOf(given[v], rank, type)));
    result.views.push_back({copy.bytes(), static_cast<hyb_element_type>(type),
                            rank, given[v].sizes, given[v].strides});
    result.copies.push_back(std::move(copy));
  }
  return result;
}

Status checkGiven(const PlanInstance &instance, size_t launch,
                  const LaunchViews &views) {
  for (size_t v = 0; v < views.views.size(); ++v) {
    const PlanBuffer &buffer =
        instance.entry().buffers[instance.planView(launch, v).buffer];
    if (!isFloat(buffer.type) || !isGiven(buffer.kind))
      continue;
    if (std::optional<Finding> bad = firstBad(views.views[v]))
      return failure(
          HYB_NOT_FINITE,
          "%s: %s holds %s at %s before %s reads it (kernel %s); the call was "
          "given it, look at where it comes from",
          instance.entry().name.c_str(), describe(buffer).c_str(),
          nameOf(bad->value), bad->index.c_str(),
          instance.origin(launch).label().c_str(),
          instance.workerName(launch).c_str());
  }
  return Status();
}

Status checkMade(const PlanInstance &instance, size_t launch,
                 const LaunchViews &views) {
  const PlanKernel *kernel = instance.kernelOf(launch);
  std::string caution =
      kernel && !kernel->caution.empty() ? "; " + kernel->caution : "";
  for (size_t v = 0; v < views.views.size(); ++v) {
    const PlanBuffer &buffer =
        instance.entry().buffers[instance.planView(launch, v).buffer];
    if (!isFloat(buffer.type))
      continue;
    if (std::optional<Finding> bad = firstBad(views.views[v]))
      return failure(
          HYB_NOT_FINITE,
          "%s: %s gave %s at %s of its view %zu (kernel %s), and nothing it "
          "read was that%s",
          instance.entry().name.c_str(),
          instance.origin(launch).label().c_str(), nameOf(bad->value),
          bad->index.c_str(), v, instance.workerName(launch).c_str(),
          caution.c_str());
  }
  return Status();
}

} // namespace hyb::rt
