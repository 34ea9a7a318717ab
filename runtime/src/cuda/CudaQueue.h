//===- CudaQueue.h - Launch lists in a stream -------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CUDA_CUDAQUEUE_H
#define HYBRID_RUNTIME_CUDA_CUDAQUEUE_H

#include "core/PlanInstance.h"
#include "cuda/CudaContext.h"
#include "cuda/Nvtx.h"

namespace hyb::rt::cuda {

/// A stream of its own or the caller's.
///
/// A list that comes a second time with the same addresses becomes a graph: a
/// chain of its kernels, started by one call of the driver. What changes from
/// call to call (tokens, positions, lengths) is in buffers that the kernels
/// read, so the graph stays right. It is built node by node and not recorded
/// from the stream, which may be the default stream, where nothing can be
/// recorded. Where the driver can, a kernel that says so begins before the one
/// in front of it has ended. A product of a library is recorded from a stream
/// that is there for that alone, and becomes a graph of its own in the chain.
class CudaQueue : public Queue {
public:
  static Result<std::unique_ptr<Queue>>
  create(std::shared_ptr<CudaContext> context, const QueueOptions &options);
  ~CudaQueue() override;

  Status reserve(PlanInstance &instance) override;
  Status run(PlanInstance &instance, LaunchTimes *times) override;
  Status runOne(PlanInstance &instance, size_t launch) override;
  Status upload(const StagedMemory &memory, int64_t bytes) override;
  Status download(const StagedMemory &memory, int64_t bytes) override;
  Status fill(void *target, int64_t bytes, uint32_t word) override;
  Status finish() override;
  int64_t bytes() const override { return workspace.bytes(); }

private:
  struct PreparedList;

  Status checkLaunch(const PlanInstance &instance, size_t index) const;
  /// Brings the parameters of a list up to date with its addresses.
  Result<PreparedList *> refresh(PlanInstance &instance) const;
  /// One of a launch's tensor maps, of the view's present address.
  Status encode(const PlanInstance &instance, size_t index,
                const PlanTensorMap &map, TensorMap *made) const;
  Status launchAll(const PlanInstance &instance, PreparedList &list,
                   LaunchTimes *times);
  Status launchOne(const PlanInstance &instance, PreparedList &list,
                   size_t index);
  /// What products of a library need: room, and a stream to be recorded from.
  Status reserveProducts();
  /// A product as a graph.
  Result<Graph> record(const PlanInstance &instance, size_t index) const;
  Status buildGraph(const PlanInstance &instance, PreparedList &list) const;
  /// With edges that kernels may begin early along, or without.
  Status tryGraph(const PlanInstance &instance, PreparedList &list,
                  bool early) const;
  Status addNode(const PlanInstance &instance, PreparedList &list, size_t index,
                 Graph graph, bool early, GraphNode *last) const;
  Status addProduct(const PlanInstance &instance, size_t index, Graph graph,
                    GraphNode *last) const;
  Status mark(size_t index);
  Status readTimes(LaunchTimes &times, size_t launches);
  std::string describe(const PlanInstance &instance, size_t index) const;

  std::shared_ptr<CudaContext> context;
  std::unique_ptr<Nvtx> nvtx;
  QueueOptions options;
  Stream stream = nullptr, recorder = nullptr;
  /// Of products, which run one after another.
  DeviceMemory workspace;
  std::vector<Event> events;
  /// For errors that come late.
  std::string lastWork = "work";
};

} // namespace hyb::rt::cuda

#endif // HYBRID_RUNTIME_CUDA_CUDAQUEUE_H
