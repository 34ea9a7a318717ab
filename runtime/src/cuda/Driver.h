//===- Driver.h - The CUDA driver, opened at run time -----------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CUDA_DRIVER_H
#define HYBRID_RUNTIME_CUDA_DRIVER_H

#include "core/Status.h"
#include "cuda/DriverApi.h"

#include <memory>

namespace hyb::rt::cuda {

/// The functions of the driver library: `libcuda.so.1`, or the file that the
/// environment variable HYBRID_CUDA_DRIVER names.
class Driver {
public:
  /// The library, initialised and new enough.
  static Result<std::shared_ptr<const Driver>> open();
  ~Driver();

#define HYB_CUDA_MEMBER(name, symbol, arguments) int(*name) arguments = nullptr;
  HYB_CUDA_FUNCTIONS(HYB_CUDA_MEMBER)
  HYB_CUDA_OPTIONAL_FUNCTIONS(HYB_CUDA_MEMBER)
#undef HYB_CUDA_MEMBER

  /// As in cuDriverGetVersion: 13000 for 13.0.
  int version() const { return versionNumber; }

  /// An error if `code` is one: "cuda:0: cannot `action`: NAME (text)", with
  /// the way out that fits.
  Status check(int code, const std::string &where,
               const std::string &action) const;

private:
  Status resolve(const char *path);

  void *library = nullptr;
  int versionNumber = 0;
};

} // namespace hyb::rt::cuda

#endif // HYBRID_RUNTIME_CUDA_DRIVER_H
