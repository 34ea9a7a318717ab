//===- CudaQueue.cpp -----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cuda/CudaQueue.h"

#include "cuda/CublasLt.h"
#include "cuda/CudaProgram.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

namespace hyb::rt::cuda {

namespace {

/// Of the kernel border: the views, then the grid.
constexpr size_t kViewWords = sizeof(KernelView) / 8, kGridWords = 4;
/// What a kernel can be given: the second since CUDA 12.1.
constexpr size_t kOldParameterBytes = 4096, kParameterBytes = 32764;
constexpr int kLargeParametersVersion = 12010;
/// Blocks in the first dimension of a grid.
constexpr int64_t kMaxBlocks = INT32_MAX;

const CudaKernel &kernelOf(const Launch &launch) {
  return *static_cast<const CudaKernel *>(launch.kernel);
}

/// Of a launch that is one of a library.
const CublasLtProduct &productOf(const Launch &launch) {
  return *static_cast<const CublasLtProduct *>(launch.product);
}

size_t structureBytes(const Launch &launch) {
  return 8 * (launch.viewCount * kViewWords + kGridWords);
}

/// With the tensor maps, which begin at multiples of their alignment.
size_t parameterBytes(const Launch &launch) {
  size_t maps = kernelOf(launch).maps.size() * sizeof(TensorMap);
  return structureBytes(launch) + (maps ? alignof(TensorMap) + maps : 0);
}

} // namespace

/// The by-value parameters of every launch, and the graph once there is one.
struct CudaQueue::PreparedList : PreparedLaunches {
  explicit PreparedList(std::shared_ptr<CudaContext> context)
      : context(std::move(context)) {}
  ~PreparedList() override { dropGraph(); }

  void dropGraph() {
    if (!graph)
      return;
    ContextScope scope(*context);
    context->driver().graphExecDestroy(graph);
    graph = nullptr;
  }
  /// The addresses of a launch's parameters: its structure, then its maps.
  void **parameters(size_t launch) {
    return pointers.data() + firstPointer[launch];
  }

  std::shared_ptr<CudaContext> context;
  std::vector<uint64_t> words;
  std::vector<TensorMap> maps;
  std::vector<void *> pointers;
  std::vector<size_t> firstWord, firstMap, firstPointer;
  uint64_t generation = 0;
  bool ranBefore = false;
  GraphExec graph = nullptr;
};

Result<std::unique_ptr<Queue>>
CudaQueue::create(std::shared_ptr<CudaContext> context,
                  const QueueOptions &options) {
  auto queue = std::make_unique<CudaQueue>();
  queue->context = std::move(context);
  queue->options = options;
  queue->nvtx = Nvtx::open();
  if (options.useStream) {
    queue->stream = static_cast<Stream>(options.stream);
    return std::unique_ptr<Queue>(std::move(queue));
  }
  ContextScope scope(*queue->context);
  HYB_TRY(scope.status());
  HYB_TRY(queue->context->check(
      queue->context->driver().streamCreate(&queue->stream, kStreamNonBlocking),
      "make a stream"));
  return std::unique_ptr<Queue>(std::move(queue));
}

CudaQueue::~CudaQueue() {
  ContextScope scope(*context);
  for (Event event : events)
    context->driver().eventDestroy(event);
  if (recorder)
    context->driver().streamDestroy(recorder);
  if (stream && !options.useStream)
    context->driver().streamDestroy(stream);
}

/// Blocks to start; fewer than tasks where a block takes several.
static unsigned blocksOf(const Launch &launch, const CudaKernel &kernel) {
  int64_t blocks = launch.tasks;
  if (kernel.mostBlocks > 0)
    blocks = std::min(blocks, kernel.mostBlocks);
  return static_cast<unsigned>(blocks);
}

std::string CudaQueue::describe(const PlanInstance &instance,
                                size_t index) const {
  const Launch &launch = instance.launches()[index];
  std::string place = instance.origin(index).label().substr(0, 120) + " of " +
                      instance.entry().name.substr(0, 40);
  if (launch.product)
    return place + " (" + launch.product->name + ")";
  const CudaKernel &kernel = kernelOf(launch);
  char text[512];
  std::snprintf(text, sizeof(text),
                "%s (kernel %.120s, %" PRId64
                " blocks of %u threads, %u bytes of shared memory, %d "
                "registers)",
                place.c_str(), kernel.name.c_str(), launch.tasks,
                kernel.threads, kernel.sharedBytes, kernel.registers);
  return text;
}

Status CudaQueue::checkLaunch(const PlanInstance &instance,
                              size_t index) const {
  const Launch &launch = instance.launches()[index];
  if (launch.tasks > kMaxBlocks)
    return failure(
        HYB_OUT_OF_RANGE,
        "%s: %s has more than %" PRId64 " blocks; use a smaller batch",
        context->name().c_str(), describe(instance, index).c_str(), kMaxBlocks);
  bool large = context->driver().version() >= kLargeParametersVersion &&
               context->capability() >= 70;
  size_t limit = large ? kParameterBytes : kOldParameterBytes;
  if (launch.gridRank > kGridWords || parameterBytes(launch) > limit)
    return failure(HYB_INVALID_FILE,
                   "%s: %s has %u grid dimensions and %zu bytes of parameters, "
                   "at most %zu and %zu fit; compile the spec again",
                   context->name().c_str(), describe(instance, index).c_str(),
                   launch.gridRank, parameterBytes(launch), kGridWords, limit);
  return Status();
}

Status CudaQueue::reserve(PlanInstance &instance) {
  if (instance.prepared)
    return Status();
  auto list = std::make_unique<PreparedList>(context);
  size_t words = 0, maps = 0, pointers = 0;
  for (size_t i = 0; i < instance.launches().size(); ++i) {
    const Launch &launch = instance.launches()[i];
    list->firstWord.push_back(words);
    list->firstMap.push_back(maps);
    list->firstPointer.push_back(pointers);
    if (launch.product) {
      HYB_TRY(reserveProducts());
      continue;
    }
    HYB_TRY(checkLaunch(instance, i));
    words += structureBytes(launch) / 8;
    maps += kernelOf(launch).maps.size();
    pointers += 1 + kernelOf(launch).maps.size();
  }
  list->words.resize(words);
  list->maps.resize(maps);
  list->pointers.resize(pointers);
  instance.prepared = std::move(list);
  return Status();
}

Status CudaQueue::reserveProducts() {
  if (workspace.bytes() == 0) {
    HYB_ASSIGN(workspace, context->allocate(CublasLt::kWorkspaceBytes));
  }
  if (recorder || !options.prepare)
    return Status();
  ContextScope scope(*context);
  HYB_TRY(scope.status());
  return context->check(
      context->driver().streamCreate(&recorder, kStreamNonBlocking),
      "make a stream");
}

/// Sizes and strides from the last dimension to the first, strides in bytes.
/// What lies outside of the view is read as 0.
Status CudaQueue::encode(const PlanInstance &instance, size_t index,
                         const PlanTensorMap &map, TensorMap *made) const {
  const KernelView &view = instance.launches()[index].views[map.view];
  constexpr uint64_t kBytes = 2;
  auto rank = static_cast<unsigned>(map.box.size());
  uint64_t sizes[kMaxViewRank], strides[kMaxViewRank];
  unsigned box[kMaxViewRank], steps[kMaxViewRank];
  for (unsigned n = 0; n < rank; ++n) {
    unsigned dim = rank - 1 - n;
    // No map has a size of 0; of a view without elements nothing is copied.
    sizes[n] = static_cast<uint64_t>(std::max<int64_t>(view.sizes[dim], 1));
    box[n] = static_cast<unsigned>(map.box[dim]);
    steps[n] = 1;
    // That of the last dimension is 1 and not said.
    if (n > 0)
      strides[n - 1] = static_cast<uint64_t>(view.strides[dim]) * kBytes;
  }
  return context->check(
      context->driver().tensorMapEncode(
          made, map.isBf16 ? kTensorBf16 : kTensorF16, rank, view.base, sizes,
          strides, box, steps, /*interleave=*/0, kSwizzle128, kPromote256,
          /*fill=*/0),
      "make a tensor map of view " + std::to_string(map.view) + " for " +
          describe(instance, index) +
          ", whose address and strides must be multiples of 16 bytes");
}

Result<CudaQueue::PreparedList *>
CudaQueue::refresh(PlanInstance &instance) const {
  auto &list = static_cast<PreparedList &>(*instance.prepared);
  if (list.generation == instance.generation())
    return &list;
  list.dropGraph();
  list.ranBefore = false;
  for (size_t i = 0; i < instance.launches().size(); ++i) {
    const Launch &launch = instance.launches()[i];
    if (launch.product)
      continue;
    uint64_t *words = list.words.data() + list.firstWord[i];
    std::memcpy(words, launch.views, launch.viewCount * sizeof(KernelView));
    words += launch.viewCount * kViewWords;
    for (uint32_t d = 0; d < kGridWords; ++d)
      words[d] =
          d < launch.gridRank ? static_cast<uint64_t>(launch.grid[d]) : 1;
    void **parameters = list.parameters(i);
    *parameters++ = list.words.data() + list.firstWord[i];
    TensorMap *made = list.maps.data() + list.firstMap[i];
    for (const PlanTensorMap &map : kernelOf(launch).maps) {
      HYB_TRY(encode(instance, i, map, made));
      *parameters++ = made++;
    }
  }
  // Only now: what failed is made again.
  list.generation = instance.generation();
  return &list;
}

Status CudaQueue::launchOne(const PlanInstance &instance, PreparedList &list,
                            size_t index) {
  const Launch &launch = instance.launches()[index];
  if (launch.product) {
    const CublasLtProduct &product = productOf(launch);
    HYB_TRY(product.library().check(
        product.run(launch.views, workspace.data(), stream),
        "run " + describe(instance, index)));
    return options.checkEachLaunch
               ? context->check(context->driver().streamWait(stream),
                                "run " + describe(instance, index))
               : Status();
  }
  const CudaKernel &kernel = kernelOf(launch);
  int code = context->driver().launch(
      kernel.function, blocksOf(launch, kernel), 1, 1, kernel.threads, 1, 1,
      kernel.sharedBytes, stream, list.parameters(index), nullptr);
  if (code == kSuccess && options.checkEachLaunch)
    code = context->driver().streamWait(stream);
  if (code == kSuccess)
    return Status();
  return context->check(code, "run " + describe(instance, index));
}

Status CudaQueue::mark(size_t index) {
  const Driver &driver = context->driver();
  if (index == events.size()) {
    Event event = nullptr;
    HYB_TRY(context->check(driver.eventCreate(&event, 0), "make an event"));
    events.push_back(event);
  }
  return context->check(driver.eventRecord(events[index], stream),
                        "record an event");
}

Status CudaQueue::launchAll(const PlanInstance &instance, PreparedList &list,
                            LaunchTimes *times) {
  for (size_t i = 0; i < instance.launches().size(); ++i) {
    if (times)
      HYB_TRY(mark(i));
    if (nvtx)
      nvtx->begin(instance.origin(i).label().c_str());
    Status status = launchOne(instance, list, i);
    if (nvtx)
      nvtx->end();
    HYB_TRY(status);
  }
  return Status();
}

Status CudaQueue::readTimes(LaunchTimes &times, size_t launches) {
  HYB_TRY(mark(launches));
  HYB_TRY(finish());
  int64_t total = 0;
  for (size_t i = 0; i < launches; ++i) {
    float milliseconds = 0;
    HYB_TRY(context->check(
        context->driver().eventElapsed(&milliseconds, events[i], events[i + 1]),
        "read an event"));
    times.nanoseconds.push_back(static_cast<int64_t>(milliseconds * 1e6f));
    total += times.nanoseconds.back();
  }
  // The GPU's clock is another one; the lists ended just now by ours.
  times.begin = nanosecondsNow() - total;
  return Status();
}

Result<Graph> CudaQueue::record(const PlanInstance &instance,
                                size_t index) const {
  const Driver &driver = context->driver();
  const CublasLtProduct &product = productOf(instance.launches()[index]);
  const std::string action = "record " + describe(instance, index);
  HYB_TRY(context->check(driver.captureBegin(recorder, kCaptureThreadLocal),
                         action));
  int code =
      product.run(instance.launches()[index].views, workspace.data(), recorder);
  // Ends in any case, or the stream would be of no use any more.
  Graph graph = nullptr;
  Status ended = context->check(driver.captureEnd(recorder, &graph), action);
  Status ran = product.library().check(code, action);
  if (graph && !ran.ok())
    driver.graphDestroy(graph);
  HYB_TRY(ran);
  HYB_TRY(ended);
  return graph;
}

/// What comes behind it waits for all of it.
Status CudaQueue::addProduct(const PlanInstance &instance, size_t index,
                             Graph graph, GraphNode *last) const {
  const Driver &driver = context->driver();
  HYB_ASSIGN(Graph recorded, record(instance, index));
  GraphNode node = nullptr;
  int code = driver.graphAddChild(&node, graph, last, *last ? 1 : 0, recorded);
  driver.graphDestroy(recorded); // the node has a copy
  *last = node;
  return context->check(code,
                        "put " + describe(instance, index) + " into a graph");
}

/// Puts a launch behind the node `last`, which it becomes.
Status CudaQueue::addNode(const PlanInstance &instance, PreparedList &list,
                          size_t index, Graph graph, bool early,
                          GraphNode *last) const {
  const Driver &driver = context->driver();
  const Launch &launch = instance.launches()[index];
  const CudaKernel &kernel = kernelOf(launch);
  KernelNode wanted = {};
  wanted.function = kernel.function;
  wanted.gridX = blocksOf(launch, kernel);
  wanted.blockX = kernel.threads;
  wanted.gridY = wanted.gridZ = wanted.blockY = wanted.blockZ = 1;
  wanted.sharedBytes = kernel.sharedBytes;
  wanted.parameters = list.parameters(index);
  GraphNode node = nullptr;
  bool whole = *last && !(early && kernel.overlaps);
  int code = driver.graphAddKernel(&node, graph, last, whole ? 1 : 0, &wanted);
  if (code == kSuccess && *last && !whole) {
    GraphEdge edge = {kPortProgrammatic, 0, kEdgeProgrammatic, {}};
    code = driver.graphAddEdges(graph, last, &node, &edge, 1);
  }
  *last = node;
  if (code == kSuccess)
    return Status();
  return context->check(code,
                        "put " + describe(instance, index) + " into a graph");
}

Status CudaQueue::tryGraph(const PlanInstance &instance, PreparedList &list,
                           bool early) const {
  const Driver &driver = context->driver();
  Graph graph = nullptr;
  HYB_TRY(context->check(driver.graphCreate(&graph, 0), "make a graph"));
  GraphNode last = nullptr;
  Status status;
  bool afterProduct = false;
  for (size_t i = 0; i < instance.launches().size() && status.ok(); ++i) {
    bool isProduct = instance.launches()[i].product;
    status = isProduct ? addProduct(instance, i, graph, &last)
                       : addNode(instance, list, i, graph,
                                 early && !afterProduct, &last);
    afterProduct = isProduct;
  }
  if (status.ok())
    status = context->check(driver.graphInstantiate(&list.graph, graph, 0),
                            "prepare the graph of " + instance.entry().name);
  driver.graphDestroy(graph);
  return status;
}

Status CudaQueue::buildGraph(const PlanInstance &instance,
                             PreparedList &list) const {
  // A driver may know such edges and not have them for every GPU.
  if (context->driver().graphAddEdges &&
      tryGraph(instance, list, /*early=*/true).ok())
    return Status();
  list.graph = nullptr;
  return tryGraph(instance, list, /*early=*/false);
}

Status CudaQueue::run(PlanInstance &instance, LaunchTimes *times) {
  ContextScope scope(*context);
  HYB_TRY(scope.status());
  HYB_ASSIGN(PreparedList * prepared, refresh(instance));
  PreparedList &list = *prepared;
  lastWork = instance.entry().name;
  if (nvtx)
    nvtx->begin(lastWork.c_str());
  Status status;
  bool oneByOne = times || nvtx || options.checkEachLaunch || !options.prepare;
  if (oneByOne || !list.ranBefore) {
    status = launchAll(instance, list, times);
    list.ranBefore = status.ok();
  } else {
    if (!list.graph)
      status = buildGraph(instance, list);
    int code = kSuccess;
    if (status.ok())
      code = context->driver().graphLaunch(list.graph, stream);
    if (code != kSuccess)
      status = context->check(code, "run the graph of " + lastWork);
  }
  if (times && status.ok())
    status = readTimes(*times, instance.launches().size());
  if (nvtx)
    nvtx->end();
  return status;
}

Status CudaQueue::runOne(PlanInstance &instance, size_t launch) {
  ContextScope scope(*context);
  HYB_TRY(scope.status());
  lastWork = instance.entry().name;
  HYB_ASSIGN(PreparedList * list, refresh(instance));
  HYB_TRY(launchOne(instance, *list, launch));
  return finish();
}

Status CudaQueue::upload(const StagedMemory &memory, int64_t bytes) {
  if (bytes == 0)
    return Status();
  ContextScope scope(*context);
  HYB_TRY(scope.status());
  return context->check(context->driver().copyToDevice(
                            pointerOf(memory.device.data()), memory.host.data(),
                            static_cast<size_t>(bytes), stream),
                        "copy to the GPU");
}

Status CudaQueue::download(const StagedMemory &memory, int64_t bytes) {
  if (bytes == 0)
    return Status();
  ContextScope scope(*context);
  HYB_TRY(scope.status());
  return context->check(context->driver().copyToHost(
                            memory.host.data(), pointerOf(memory.device.data()),
                            static_cast<size_t>(bytes), stream),
                        "copy from the GPU");
}

Status CudaQueue::fill(void *target, int64_t bytes, uint32_t word) {
  if (bytes == 0)
    return Status();
  ContextScope scope(*context);
  HYB_TRY(scope.status());
  return context->check(context->driver().fillWords(
                            pointerOf(target), word,
                            static_cast<size_t>(bytes) / sizeof(word), stream),
                        "fill memory of the GPU");
}

Status CudaQueue::finish() {
  ContextScope scope(*context);
  HYB_TRY(scope.status());
  int code = context->driver().streamWait(stream);
  return code == kSuccess ? Status()
                          : context->check(code, "finish " + lastWork);
}

} // namespace hyb::rt::cuda
