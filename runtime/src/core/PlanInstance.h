//===- PlanInstance.h - A plan entry for given capacities -------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_PLANINSTANCE_H
#define HYBRID_RUNTIME_CORE_PLANINSTANCE_H

#include "core/Device.h"
#include "core/Plan.h"
#include "core/ProductLibrary.h"
#include "core/Tables.h"

namespace hyb::rt {

/// The numbers that fix every size of a call.
struct CallShape {
  Symbols symbols;
  /// `longest` in the sizes and views of states: the chunk that the state was
  /// made for.
  int64_t stateChunk = 0;

  bool operator==(const CallShape &other) const {
    return symbols == other.symbols && stateChunk == other.stateChunk;
  }
  Symbols stateSymbols() const {
    Symbols result = symbols;
    result[Symbols::Longest] = stateChunk;
    return result;
  }
};

/// Kernels count on buffers that start at multiples of 64 bytes.
inline constexpr int64_t kRandomKeyStride = 64;

/// Where the buffers of a call are. What an entry does not use may be null.
struct Bindings {
  void *arena = nullptr, *constants = nullptr;
  void *parameters = nullptr, *parameterCopies = nullptr;
  void *gradients = nullptr;
  void *moment1 = nullptr, *moment2 = nullptr;
  void *ids = nullptr, *labels = nullptr, *weights = nullptr;
  void *segmentTable = nullptr, *tokenSegment = nullptr, *tokensById = nullptr;
  /// One word each `kRandomKeyStride` bytes, by index in the entry's list.
  void *randomKeys = nullptr;
  void *loss = nullptr, *logits = nullptr, *scalars = nullptr;
  /// By index in the state table.
  std::vector<void *> states;
  /// By index in the entry's `arguments`.
  std::vector<void *> arguments;

  bool operator==(const Bindings &other) const {
    auto all = [](const Bindings &b) {
      return std::tie(b.arena, b.constants, b.parameters, b.parameterCopies,
                      b.gradients, b.moment1, b.moment2, b.ids, b.labels,
                      b.weights, b.segmentTable, b.tokenSegment, b.tokensById,
                      b.randomKeys, b.loss, b.logits, b.scalars, b.states,
                      b.arguments);
    };
    return all(*this) == all(other);
  }
};

/// What an entry is checked against.
struct ModelTables {
  const Plan &plan;
  const ModelMeta &meta;
  const ParameterTable &parameters;
  const StateTable &states;
  /// By index in the plan.
  const std::vector<KernelHandle> &kernels;
  /// Where each parameter is in what parameters are bound to, in elements, when
  /// that holds some of them alone (-1: not this one); else null.
  const std::vector<int64_t> *someParameters = nullptr;
  /// What may compute marked products; null: kernels do.
  ProductLibrary *products = nullptr;
};

/// An entry whose expressions have been evaluated: every launch that runs, with
/// its views checked to lie inside their buffers. Making one costs microseconds
/// per launch; running it again costs an addition per view.
class PlanInstance {
public:
  static Result<PlanInstance> create(const ModelTables &tables,
                                     const PlanEntry &entry,
                                     const CallShape &shape);

  const PlanEntry &entry() const { return *source; }
  const CallShape &shape() const { return callShape; }
  int64_t arenaBytes() const { return arenaSize; }
  int64_t scratchBytes() const { return scratchSize; }

  /// Puts addresses into the views. The launches are valid until the next bind.
  void bind(Bindings bindings);
  /// Another number for every set of addresses that bind has put in.
  uint64_t generation() const { return bindCount; }
  const std::vector<Launch> &launches() const { return list; }
  /// The launch of the entry that launch `i` of the list came from.
  const PlanLaunch &origin(size_t i) const {
    return source->launches[origins[i]];
  }
  /// What the plan says of view `view` of launch `i` of the list.
  const PlanView &planView(size_t i, size_t view) const {
    return *viewPlaces[launchPlaces[i].firstView + view].view;
  }
  /// Its kernel in the plan; null for a product of the library.
  const PlanKernel *kernelOf(size_t i) const {
    return list[i].product ? nullptr : &plan->kernels[launchPlaces[i].kernel];
  }
  /// The kernel or the library, for people.
  const std::string &workerName(size_t i) const {
    return list[i].product ? list[i].product->name
                           : plan->kernels[launchPlaces[i].kernel].name;
  }

  /// Belongs to the queue that runs this instance.
  std::unique_ptr<PreparedLaunches> prepared;

private:
  struct BufferPlace {
    BufferKind kind;
    int64_t elements;
    int64_t offset; // in bytes, in what it is bound to
    size_t index;   // in the state table, or in the entry's arguments
  };
  struct ViewPlace {
    const PlanView *view;
    uint32_t buffer;
    int64_t offset; // in bytes
  };
  struct LaunchPlace {
    size_t kernel, firstView, firstGrid;
    int64_t tasks;
    uint32_t viewCount, gridRank;
    std::shared_ptr<const LibraryProduct> product;
  };

  // Buffers (PlanBuffers.cpp).
  Status placeBuffers(const ModelTables &tables);
  Status layOutArena();
  Result<BufferPlace> placeBuffer(const ModelTables &tables,
                                  const PlanBuffer &buffer) const;
  Result<int64_t> elementsOfCaller(const ModelTables &tables,
                                   const PlanBuffer &buffer,
                                   BufferPlace &place) const;
  Result<int64_t> placeInFlat(const ModelTables &tables,
                              const PlanBuffer &buffer,
                              BufferPlace &place) const;
  Result<int64_t> placeInState(const ModelTables &tables,
                               const PlanBuffer &buffer,
                               BufferPlace &place) const;
  /// Those of the buffer's sizes.
  Symbols symbolsOf(const PlanBuffer &buffer) const;
  void *baseOf(const BufferPlace &place, const Bindings &bindings) const;

  // Launches (PlanInstance.cpp).
  Status placeLaunches(const ModelTables &tables);
  Status placePieces(const ModelTables &tables, const PlanPieces &pieces);
  /// Launches `first` to `last`; `symbols` are those of the call, or of a piece
  /// of its rows.
  Status placeRange(const ModelTables &tables, uint32_t first, uint32_t last,
                    const Symbols &symbols);
  /// The alternative of a launch that runs.
  Result<std::optional<uint32_t>> choose(uint32_t index,
                                         const Symbols &symbols) const;
  Status placeLaunch(const ModelTables &tables, uint32_t index,
                     const Symbols &symbols);
  /// Gives a product that begins at launch `index` to the library; how many
  /// launches that is, 0 when their kernels are to run.
  Result<uint32_t> placeProduct(const ModelTables &tables, uint32_t index,
                                uint32_t last, const Symbols &symbols);
  /// Of the last three views, which are those of a product.
  Result<ProductShape> productShape(const PlanProduct &product,
                                    const std::string &where) const;
  std::string nameOf(uint32_t index) const;
  Status placeView(const PlanView &view, Symbols symbols,
                   const std::string &where);
  /// Its view exists and has its rank.
  Status checkTensorMap(const PlanTensorMap &map,
                        const PlanAlternative &alternative,
                        const std::string &where) const;

  const Plan *plan = nullptr;
  const PlanEntry *source = nullptr;
  CallShape callShape;
  int64_t arenaSize = 0, scratchSize = 0;
  /// Launches and views that pieces have come to.
  int64_t pieceParts = 0;
  std::vector<BufferPlace> buffers;
  std::vector<ViewPlace> viewPlaces;
  std::vector<KernelView> views;
  std::vector<int64_t> grids;
  std::vector<LaunchPlace> launchPlaces;
  std::vector<uint32_t> origins;
  std::vector<Launch> list;
  Bindings bound;
  uint64_t bindCount = 0;
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_PLANINSTANCE_H
