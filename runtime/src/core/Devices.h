//===- Devices.h - The devices there are ------------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place of the core that knows devices by name.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_DEVICES_H
#define HYBRID_RUNTIME_CORE_DEVICES_H

#include "core/Device.h"
#include "cpu/CpuLevel.h"

namespace hyb::rt {

class ThreadPool;

/// What the user asked for, and the devices opened for it so far.
class Devices {
public:
  /// `wanted`: "auto", "cpu" or "cuda:N"; a device named is opened at once, so
  /// that a machine without it is noticed before any work.
  static Result<std::unique_ptr<Devices>> create(const std::string &wanted,
                                                 bool useCurrentContext,
                                                 ProductChoice products,
                                                 ThreadPool &threads,
                                                 std::optional<CpuLevel> level);

  /// The device that runs an artefact. For "auto" the first accelerator if the
  /// artefact has code for it, else the processor; `*reason` then says why.
  Result<Device *> choose(const HbxReader &artefact, std::string *reason);

private:
  Result<Device *> accelerator();
  /// The processor, unless its products must be a library's.
  Result<Device *> processor(const std::string &reason) const;

  bool automatic = true, wantsCpu = false, useCurrent = false;
  ProductChoice products = ProductChoice::Compiled;
  int ordinal = 0;
  std::unique_ptr<Device> cpu, cuda;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_DEVICES_H
