//===- Device.h - Where a model's buffers are and its launches run --------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the core needs of a processor or an accelerator: memory, copies, the
// code of an artefact, and a queue that runs launch lists in order. The devices
// themselves are in rooms of their own; `core/Devices.h` makes them.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_DEVICE_H
#define HYBRID_RUNTIME_CORE_DEVICE_H

#include "core/Launch.h"
#include "core/Memory.h"
#include "core/ProductLibrary.h"
#include "hybrid/dlpack.h"

#include <functional>
#include <memory>
#include <vector>

namespace hyb::rt {

class HbxReader;
class PlanInstance;
struct Plan;

/// Fills `piece` with the bytes [begin, begin + bytes) of a whole.
using PieceSource =
    std::function<void(void *piece, int64_t begin, int64_t bytes)>;

/// What new memory holds.
enum class Contents : uint8_t { Zeros, Anything };

/// A block that kernels of a device see. Shares may be given away: the memory
/// is freed with the last one.
class DeviceMemory {
public:
  /// What a device keeps to free the block.
  struct Block {
    virtual ~Block() = default;
  };

  DeviceMemory() = default;
  DeviceMemory(std::shared_ptr<Block> block, void *address, int64_t bytes)
      : block(std::move(block)), address(address), size(bytes) {}

  void *data() const { return address; }
  int64_t bytes() const { return size; }
  std::shared_ptr<Block> share() const { return block; }
  /// How many have this memory.
  long owners() const { return block.use_count(); }

private:
  std::shared_ptr<Block> block;
  void *address = nullptr;
  int64_t size = 0;
};

/// A buffer with a side for the host and a side for kernels, between which a
/// queue copies; one and the same memory where the device is the host.
struct StagedMemory {
  DeviceMemory host, device;

  template <typename T> T *hostAt(int64_t byteOffset) const {
    return reinterpret_cast<T *>(static_cast<char *>(host.data()) + byteOffset);
  }
  void *deviceAt(int64_t byteOffset) const {
    return static_cast<char *>(device.data()) + byteOffset;
  }
  int64_t bytes() const { return device.bytes(); }
  /// Whether somebody else has the device's side.
  bool isLent() const {
    return device.owners() > (host.data() == device.data() ? 2 : 1);
  }
};

/// When the launches of a list ran: the clock's time (nanosecondsNow) at the
/// start of the first, and how long each one took.
struct LaunchTimes {
  int64_t begin = 0;
  std::vector<int64_t> nanoseconds;
};

/// Of a clock that never goes back.
int64_t nanosecondsNow();

/// What a queue keeps with a launch list that it has seen, to run it faster.
struct PreparedLaunches {
  virtual ~PreparedLaunches() = default;
};

struct QueueOptions {
  /// Find the launch that fails, at the price of speed.
  bool checkEachLaunch = false;
  /// May keep prepared launch lists.
  bool prepare = true;
  /// The caller's queue of the driver, to be used in place of an own one.
  bool useStream = false;
  void *stream = nullptr;
};

/// The work of one context, in order. Nothing that is asked for need have
/// happened before `finish` returns.
class Queue {
public:
  virtual ~Queue() = default;

  /// Everything a list needs, memory included, or the reason why it cannot run.
  virtual Status reserve(PlanInstance &instance) = 0;
  /// Runs a bound list for which was reserved. With `times`, measures.
  virtual Status run(PlanInstance &instance, LaunchTimes *times) = 0;
  /// Runs one launch of such a list and waits for it.
  virtual Status runOne(PlanInstance &instance, size_t launch) = 0;
  /// The first `bytes` of a buffer, from the host's side to the device's.
  virtual Status upload(const StagedMemory &memory, int64_t bytes) = 0;
  virtual Status download(const StagedMemory &memory, int64_t bytes) = 0;
  /// Fills with a word of four bytes.
  virtual Status fill(void *target, int64_t bytes, uint32_t word) = 0;
  /// Waits; an error says what went wrong since the last time.
  virtual Status finish() = 0;
  virtual int64_t bytes() const = 0;
};

/// The code of an artefact, loaded.
class Program {
public:
  virtual ~Program() = default;
  /// By index in the plan.
  const std::vector<KernelHandle> &kernels() const { return handles; }
  /// "x86-64-v3", "sm_90a"
  const std::string &codeName() const { return name; }
  /// What may compute its products; null: its kernels do.
  ProductLibrary *products() const { return library.get(); }
  /// Who computes products, when somebody was asked for; else empty.
  const std::string &productNote() const { return note; }

  void setProducts(std::shared_ptr<ProductLibrary> products, std::string who) {
    library = std::move(products);
    note = std::move(who);
  }

protected:
  std::vector<KernelHandle> handles;
  std::string name;

private:
  std::shared_ptr<ProductLibrary> library;
  std::string note;
};

class Device {
public:
  virtual ~Device() = default;

  /// "cpu", "cuda:0"
  virtual const char *name() const = 0;
  /// With what a person would like to know of it.
  virtual std::string description() const = 0;
  /// As other libraries number it.
  virtual hyb_dl_device dlDevice() const = 0;
  /// The host may read and write the memory of such a device.
  virtual bool isHost() const = 0;

  /// The most memory of its own that this process has had from the device at
  /// once, through this object; 0 where the device is the host.
  virtual int64_t peakBytes() const = 0;

  /// The name of the artefact's plan for this device, or why it has none.
  virtual Result<std::string> choosePlan(const HbxReader &artefact) const = 0;
  virtual Result<std::unique_ptr<Program>> load(const HbxReader &artefact,
                                                const std::string &planName,
                                                const Plan &plan) = 0;
  virtual Result<std::unique_ptr<Queue>>
  createQueue(const QueueOptions &options) = 0;

  virtual Result<DeviceMemory> allocate(int64_t bytes,
                                        Contents = Contents::Zeros) = 0;
  virtual Result<StagedMemory> allocateStaged(int64_t bytes) = 0;

  /// Copies that have happened when they return. They do not wait for queues:
  /// whoever uses them has finished what runs on the same memory.
  virtual Status write(void *target, const void *source, int64_t bytes) = 0;
  /// Of what `source` makes, a piece at a time: while one is on its way it
  /// makes the next.
  virtual Status write(void *target, int64_t bytes,
                       const PieceSource &source) = 0;
  virtual Status read(void *target, const void *source,
                      int64_t bytes) const = 0;
  virtual Status copy(void *target, const void *source, int64_t bytes) = 0;
  virtual Status clear(void *target, int64_t bytes) = 0;
};

/// Memory of a device as the host sees it: the memory itself where it can, else
/// a copy.
class HostView {
public:
  static Result<HostView> of(const Device &device, const void *address,
                             int64_t bytes);
  /// Of a copy that is there already.
  static HostView holding(Memory copy) {
    HostView view;
    view.copy = std::move(copy);
    view.address = view.copy.data();
    return view;
  }

  const char *bytes() const { return static_cast<const char *>(address); }
  const float *floats() const { return static_cast<const float *>(address); }

private:
  Memory copy;
  const void *address = nullptr;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_DEVICE_H
