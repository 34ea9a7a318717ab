//===- Device.cpp --------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Device.h"

#include <chrono>

namespace hyb::rt {

int64_t nanosecondsNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Result<HostView> HostView::of(const Device &device, const void *address,
                              int64_t bytes) {
  HostView view;
  view.address = address;
  if (device.isHost() || bytes == 0)
    return view;
  HYB_ASSIGN(view.copy, Memory::allocate(bytes));
  HYB_TRY(device.read(view.copy.data(), address, bytes));
  view.address = view.copy.data();
  return view;
}

} // namespace hyb::rt
