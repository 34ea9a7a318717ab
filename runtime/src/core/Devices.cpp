//===- Devices.cpp -------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Devices.h"

#include "cpu/CpuDevice.h"
#include "cuda/CudaDevice.h"
#include "io/HbxReader.h"

namespace hyb::rt {

namespace {

/// The N of "cuda:N"; nothing for another text. "cuda" alone is "cuda:0".
std::optional<int> cudaOrdinal(const std::string &text) {
  if (text == "cuda")
    return 0;
  std::string digits = text.substr(0, 5) == "cuda:" ? text.substr(5) : "";
  if (digits.empty() || digits.size() > 4 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoi(digits);
}

bool holdsAcceleratorCode(const HbxReader &artefact) {
  for (const HbxReader::Section &section : artefact.sections())
    if (section.kind == "cubin" || section.kind == "ptx")
      return true;
  return false;
}

} // namespace

Result<std::unique_ptr<Devices>>
Devices::create(const std::string &wanted, bool useCurrentContext,
                ProductChoice products, ThreadPool &threads,
                std::optional<CpuLevel> level) {
  auto devices = std::make_unique<Devices>();
  devices->cpu = std::make_unique<CpuDevice>(threads, level);
  devices->useCurrent = useCurrentContext;
  devices->products = products;
  devices->automatic = wanted == "auto";
  devices->wantsCpu = wanted == "cpu";
  if (devices->automatic || devices->wantsCpu)
    return devices;
  std::optional<int> ordinal = cudaOrdinal(wanted);
  if (!ordinal)
    return failure(HYB_INVALID_ARGUMENT,
                   "device '%.32s' is unknown; give auto, cpu or cuda:N",
                   wanted.c_str());
  devices->ordinal = *ordinal;
  HYB_TRY(devices->accelerator().status());
  return devices;
}

Result<Device *> Devices::accelerator() {
  if (!cuda) {
    HYB_ASSIGN(cuda, CudaDevice::open(ordinal, useCurrent, products));
  }
  return cuda.get();
}

Result<Device *> Devices::processor(const std::string &reason) const {
  if (products != ProductChoice::Library)
    return cpu.get();
  return failure(HYB_UNSUPPORTED,
                 "products=cublaslt, but the model runs on the processor: %s; "
                 "use products=auto or compiled",
                 reason.c_str());
}

Result<Device *> Devices::choose(const HbxReader &artefact,
                                 std::string *reason) {
  if (wantsCpu)
    return processor("device=cpu");
  if (!automatic)
    return accelerator();
  if (!holdsAcceleratorCode(artefact)) {
    *reason = "the artefact holds no GPU code";
    return processor(*reason);
  }
  Result<Device *> found = accelerator();
  Status status =
      found.ok() ? (*found)->choosePlan(artefact).status() : found.status();
  if (status.ok())
    return *found;
  // Without code for the processor the GPU's reason is the one that helps.
  if (!cpu->choosePlan(artefact).ok())
    return status;
  *reason = status.message();
  return processor(*reason);
}

} // namespace hyb::rt
