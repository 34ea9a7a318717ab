//===- CpuDevice.cpp -----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cpu/CpuDevice.h"

#include "core/PlanInstance.h"
#include "cpu/CodeImage.h"
#include "cpu/LaunchRunner.h"
#include "io/HbxReader.h"

#include <cstring>

namespace hyb::rt {

namespace {

struct CpuBlock : DeviceMemory::Block {
  Memory memory;
};

class CpuProgram : public Program {
public:
  static Result<std::unique_ptr<Program>> load(Bytes code, CpuLevel level,
                                               const Plan &plan) {
    auto program = std::make_unique<CpuProgram>();
    program->name = cpuLevelName(level);
    HYB_ASSIGN(program->image, CodeImage::load(code));
    for (const PlanKernel &kernel : plan.kernels) {
      const void *address = program->image.function(kernel.symbol);
      if (!address)
        return failure(HYB_INVALID_FILE,
                       "code for %s has no kernel '%.64s' (%.64s); compile the "
                       "spec again",
                       cpuLevelName(level), kernel.symbol.c_str(),
                       kernel.name.c_str());
      program->handles.push_back(address);
    }
    return std::unique_ptr<Program>(std::move(program));
  }

private:
  CodeImage image;
};

class CpuQueue : public Queue {
public:
  explicit CpuQueue(ThreadPool &threads) : threads(threads), runner(threads) {}

  Status reserve(PlanInstance &instance) override {
    return runner.reserve(instance.launches().size(), instance.scratchBytes());
  }
  Status run(PlanInstance &instance, LaunchTimes *times) override {
    const std::vector<Launch> &launches = instance.launches();
    if (times) {
      times->nanoseconds.assign(launches.size(), 0);
      times->begin = nanosecondsNow();
    }
    runner.run(launches.data(), launches.size(),
               times ? times->nanoseconds.data() : nullptr);
    return Status();
  }
  Status runOne(PlanInstance &instance, size_t launch) override {
    runner.run(&instance.launches()[launch], 1);
    return Status();
  }
  Status upload(const StagedMemory &, int64_t) override { return Status(); }
  Status download(const StagedMemory &, int64_t) override { return Status(); }
  Status fill(void *target, int64_t bytes, uint32_t word) override;
  Status finish() override { return Status(); }
  int64_t bytes() const override { return runner.bytes(); }

private:
  ThreadPool &threads;
  LaunchRunner runner;
};

// A flat buffer is as large as the model: the threads share the work.
Status CpuQueue::fill(void *target, int64_t bytes, uint32_t word) {
  constexpr int64_t kPiece = int64_t(1) << 16;
  auto *words = static_cast<uint32_t *>(target);
  int64_t count = bytes / static_cast<int64_t>(sizeof(word));
  std::atomic<int64_t> next{0};
  threads.run([&](int) {
    int64_t begin;
    while ((begin = next.fetch_add(kPiece)) < count)
      std::fill_n(words + begin, std::min(kPiece, count - begin), word);
  });
  return Status();
}

} // namespace

std::string CpuDevice::description() const {
  return "cpu, " + std::to_string(threads.size()) + " threads";
}

Result<CpuLevel> CpuDevice::chooseLevel(const HbxReader &artefact) const {
  std::string held;
  std::optional<CpuLevel> best;
  std::optional<CpuLevel> host = hostCpuLevel();
  for (CpuLevel level : kCpuLevels) {
    if (!artefact.find("code", cpuLevelName(level)))
      continue;
    held += (held.empty() ? "" : ", ") + std::string(cpuLevelName(level));
    if (host && level <= *host)
      best = level;
  }
  const char *hostName = host ? cpuLevelName(*host) : "not x86-64";
  if (forcedLevel && (!host || *forcedLevel > *host))
    return failure(HYB_UNSUPPORTED,
                   "processor level %s was asked for, this processor is %s; "
                   "ask for a lower level or for none",
                   cpuLevelName(*forcedLevel), hostName);
  if (forcedLevel && !artefact.find("code", cpuLevelName(*forcedLevel)))
    return failure(HYB_UNSUPPORTED,
                   "processor level %s was asked for, the artefact holds code "
                   "for %s; compile the spec with that level",
                   cpuLevelName(*forcedLevel),
                   held.empty() ? "none" : held.c_str());
  if (!forcedLevel && !best)
    return failure(HYB_UNSUPPORTED,
                   "artefact holds code for %s, this processor is %s; compile "
                   "the spec for this processor",
                   held.empty() ? "no processor" : held.c_str(), hostName);
  return forcedLevel ? *forcedLevel : *best;
}

Result<std::string> CpuDevice::choosePlan(const HbxReader &artefact) const {
  HYB_TRY(artefact.get("plan", "cpu").status());
  HYB_TRY(chooseLevel(artefact).status());
  return std::string("cpu");
}

Result<std::unique_ptr<Program>> CpuDevice::load(const HbxReader &artefact,
                                                 const std::string &,
                                                 const Plan &plan) {
  HYB_ASSIGN(CpuLevel level, chooseLevel(artefact));
  HYB_ASSIGN(Bytes code, artefact.get("code", cpuLevelName(level)));
  return CpuProgram::load(code, level, plan);
}

Result<std::unique_ptr<Queue>> CpuDevice::createQueue(const QueueOptions &) {
  return std::unique_ptr<Queue>(std::make_unique<CpuQueue>(threads));
}

Result<DeviceMemory> CpuDevice::allocate(int64_t bytes, Contents) {
  auto block = std::make_shared<CpuBlock>();
  HYB_ASSIGN(block->memory, Memory::allocate(bytes));
  void *address = block->memory.data();
  return DeviceMemory(std::move(block), address, bytes);
}

Result<StagedMemory> CpuDevice::allocateStaged(int64_t bytes) {
  HYB_ASSIGN(DeviceMemory memory, allocate(bytes));
  return StagedMemory{memory, memory};
}

Status CpuDevice::write(void *target, const void *source, int64_t bytes) {
  if (bytes > 0)
    std::memcpy(target, source, static_cast<size_t>(bytes));
  return Status();
}

Status CpuDevice::write(void *target, int64_t bytes,
                        const PieceSource &source) {
  if (bytes > 0)
    source(target, 0, bytes);
  return Status();
}

Status CpuDevice::read(void *target, const void *source, int64_t bytes) const {
  if (bytes > 0)
    std::memcpy(target, source, static_cast<size_t>(bytes));
  return Status();
}

Status CpuDevice::copy(void *target, const void *source, int64_t bytes) {
  return write(target, source, bytes);
}

Status CpuDevice::clear(void *target, int64_t bytes) {
  if (bytes > 0)
    std::memset(target, 0, static_cast<size_t>(bytes));
  return Status();
}

} // namespace hyb::rt
