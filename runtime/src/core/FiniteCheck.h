//===- FiniteCheck.h - Which kernel gave the first NaN ----------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_FINITECHECK_H
#define HYBRID_RUNTIME_CORE_FINITECHECK_H

#include "core/Device.h"
#include "core/PlanInstance.h"

namespace hyb::rt {

/// The views of one launch with their data on the host.
struct LaunchViews {
  static Result<LaunchViews> of(const Device &device,
                                const PlanInstance &instance, size_t launch);

  std::vector<hyb_launch_view> views;
  std::vector<HostView> copies;
};

/// Whether every float that launch `launch` reads from the caller (parameters,
/// states, gradients, inputs) is a number; the error names the buffer.
Status checkGiven(const PlanInstance &instance, size_t launch,
                  const LaunchViews &views);

/// Whether every float in the views of a launch that has run is a number; the
/// error names the layer, the operation and the kernel, and what the plan says
/// of when the kernel does that. Minus infinity is one: it is the logarithm of
/// a sum of nothing.
Status checkMade(const PlanInstance &instance, size_t launch,
                 const LaunchViews &views);

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_FINITECHECK_H
