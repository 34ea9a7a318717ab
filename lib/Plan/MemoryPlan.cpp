//===- MemoryPlan.cpp - bytes a plan takes for given capacities -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Plan/MemoryPlan.h"

#include "core/ArenaLayout.h"
#include "cpu/Workspace.h"
#include "cuda/Workspace.h"
#include "hybrid/Hybrid/GraphShapes.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

std::optional<int64_t> hybrid::evaluate(AffineExpr expr,
                                        const SymbolValues &symbols) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr))
    return symbols[symbol.getPosition()];
  auto binary = cast<AffineBinaryOpExpr>(expr);
  std::optional<int64_t> lhs = evaluate(binary.getLHS(), symbols);
  std::optional<int64_t> rhs = evaluate(binary.getRHS(), symbols);
  if (!lhs || !rhs)
    return std::nullopt;
  int64_t result;
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return llvm::checkedAdd<int64_t>(*lhs, *rhs);
  case AffineExprKind::Mul:
    return llvm::checkedMul<int64_t>(*lhs, *rhs);
  case AffineExprKind::FloorDiv:
    return *rhs > 0 ? std::optional(llvm::divideFloorSigned(*lhs, *rhs))
                    : std::nullopt;
  case AffineExprKind::CeilDiv:
    return *rhs > 0 ? std::optional(llvm::divideCeilSigned(*lhs, *rhs))
                    : std::nullopt;
  case AffineExprKind::Mod:
    if (*rhs <= 0)
      return std::nullopt;
    result = llvm::mod(*lhs, *rhs);
    return result;
  default:
    llvm_unreachable("a plan's expressions have symbols alone");
  }
}

static llvm::Expected<uint64_t> bytesOf(const PlanBuffer &buffer,
                                        const SymbolValues &symbols) {
  std::optional<int64_t> bytes = buffer.type.getIntOrFloatBitWidth() / 8;
  for (AffineExpr size : buffer.sizes) {
    std::optional<int64_t> value = evaluate(size, symbols);
    bytes = bytes && value && *value >= 0
                ? llvm::checkedMul<int64_t>(*bytes, *value)
                : std::nullopt;
  }
  if (bytes)
    return *bytes;
  return llvm::createStringError("size of buffer '%s' is not a number of bytes "
                                 "at these capacities",
                                 buffer.name.c_str());
}

//===----------------------------------------------------------------------===//
// One entry
//===----------------------------------------------------------------------===//

/// The alternative of `launch` that runs, as the runtime chooses it; null when
/// none does.
static const PlanAlternative *chooseAlternative(const PlanLaunch &launch,
                                                const SymbolValues &symbols) {
  for (const PlanAlternative &alternative : launch.alternatives)
    if (llvm::all_of(alternative.guard, [&](PlanConstraint constraint) {
          std::optional<int64_t> value = evaluate(constraint, symbols);
          return value && *value >= 0;
        }))
      return &alternative;
  return nullptr;
}

static constexpr auto tokensIndex = static_cast<size_t>(CallSymbol::tokens);

/// The symbols of a piece of `rows`.
static SymbolValues symbolsOfPiece(SymbolValues symbols, int64_t rows) {
  symbols[tokensIndex] = rows;
  return symbols;
}

std::vector<PlanRun> hybrid::listRuns(const PlanEntry &entry,
                                      const SymbolValues &symbols) {
  std::vector<PlanRun> runs;
  auto add = [&](unsigned launch, const SymbolValues &values, uint64_t times) {
    if (times == 0)
      return;
    const PlanAlternative *chosen =
        chooseAlternative(entry.launches[launch], values);
    if (chosen)
      runs.push_back({launch, chosen, times, values[tokensIndex]});
  };
  for (unsigned launch = 0; launch < entry.launches.size(); ++launch) {
    const PlanPieces *pieces = entry.piecesOf(launch);
    if (!pieces) {
      add(launch, symbols, 1);
      continue;
    }
    int64_t tokens = symbols[tokensIndex], left = tokens % pieces->rows;
    add(launch, symbolsOfPiece(symbols, pieces->rows), tokens / pieces->rows);
    add(launch, symbolsOfPiece(symbols, left), left > 0);
  }
  return runs;
}

/// The bytes of a buffer, of one of a piece for the largest piece.
static llvm::Expected<uint64_t> bytesOf(const PlanEntry &entry,
                                        const PlanBuffer &buffer,
                                        const SymbolValues &symbols) {
  if (!buffer.pieces)
    return bytesOf(buffer, symbols);
  int64_t rows = entry.pieces[*buffer.pieces].rows;
  return bytesOf(buffer,
                 symbolsOfPiece(symbols, std::min(symbols[tokensIndex], rows)));
}

llvm::Expected<EntryMemory> hybrid::planMemory(const Plan &plan,
                                               const PlanEntry &entry,
                                               const SymbolValues &symbols,
                                               unsigned threads) {
  EntryMemory memory;
  std::vector<bool> used(entry.buffers.size());
  for (const PlanRun &run : listRuns(entry, symbols)) {
    memory.launches += run.times;
    memory.scratch =
        std::max(memory.scratch, plan.kernels[run.chosen->kernel].scratch);
    if (run.chosen->product && !threads)
      memory.productWorkspace = hyb::kProductWorkspaceBytes;
    for (const PlanView &view : run.chosen->views)
      used[view.buffer] = true;
  }
  if (threads)
    memory.workspace =
        hyb::workspaceBytes(memory.launches, memory.scratch, threads);

  std::vector<hyb::ArenaBuffer> arena;
  llvm::MapVector<int, uint64_t> bound;
  for (auto [index, buffer] : llvm::enumerate(entry.buffers)) {
    if (!used[index])
      continue;
    llvm::Expected<uint64_t> bytes = bytesOf(entry, buffer, symbols);
    if (!bytes)
      return bytes.takeError();
    if (buffer.kind != BufferKind::Arena) {
      bound[static_cast<int>(buffer.kind)] += *bytes;
      continue;
    }
    arena.push_back({*bytes, buffer.first, buffer.last, 0});
    memory.buffers.push_back({&buffer, *bytes, 0});
    memory.withoutReuse += *bytes;
  }
  for (auto [kind, bytes] : bound)
    memory.bound.push_back({static_cast<BufferKind>(kind), bytes});
  if (!hyb::layoutArena(arena, memory.arena))
    return llvm::createStringError("the arena of entry '%s' overflows",
                                   entry.name.c_str());
  for (auto [buffer, placed] : llvm::zip_equal(memory.buffers, arena))
    buffer.offset = placed.offset;
  llvm::sort(memory.buffers, [](const auto &a, const auto &b) {
    return std::make_pair(b.bytes, a.buffer) <
           std::make_pair(a.bytes, b.buffer);
  });
  return memory;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static std::string formatBytes(uint64_t bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  unsigned unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit)
    value /= 1024;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::format(unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
  return text;
}

static void printLine(llvm::raw_ostream &os, StringRef what, uint64_t bytes,
                      const Twine &note = "") {
  os << llvm::format("  %-14s %12s", what.str().c_str(),
                     formatBytes(bytes).c_str());
  if (!note.isTriviallyEmpty())
    os << "  " << note;
  os << "\n";
}

static void printEntry(llvm::raw_ostream &os, const PlanEntry &entry,
                       const SymbolValues &symbols, const EntryMemory &memory) {
  static constexpr size_t shownBuffers = 8;
  os << "\n" << entry.name << ": " << memory.launches << " launches\n";
  printLine(os, "arena", memory.arena,
            "(" + Twine(formatBytes(memory.withoutReuse)) + " without reuse)");
  if (memory.workspace)
    printLine(os, "workspace", memory.workspace,
              "scratch of " + Twine(memory.scratch) + " bytes per thread");
  for (auto [kind, bytes] : memory.bound)
    printLine(os, stringifyBufferKind(kind), bytes);
  uint64_t total = memory.arena + memory.workspace;
  for (auto [kind, bytes] : memory.bound)
    total += bytes;
  printLine(os, "total", total);
  for (const PlanPieces &pieces : entry.pieces)
    if (symbols[tokensIndex] > pieces.rows)
      os << "  launches " << pieces.first << " to " << pieces.last
         << " run for every " << pieces.rows << " rows\n";
  os << "  largest of the arena:\n";
  for (const EntryMemory::Buffer &buffer :
       llvm::ArrayRef(memory.buffers).take_front(shownBuffers))
    os << llvm::format("    %12s", formatBytes(buffer.bytes).c_str()) << "  "
       << buffer.buffer->name << ", launches " << buffer.buffer->first << " to "
       << buffer.buffer->last << "\n";
}

/// What an entry's buffers of a kind have more than another entry has of it: of
/// the parameters, a model in bf16 reads few in f32 and changes all.
static uint64_t sizeBeyond(const EntryMemory &entry, BufferKind kind,
                           uint64_t size) {
  for (auto [known, bytes] : entry.bound)
    if (known == kind)
      return size > bytes ? size - bytes : 0;
  return size;
}

/// What a process holds for training and for serving, by its entries.
static void printTotals(llvm::raw_ostream &os,
                        const llvm::StringMap<EntryMemory> &entries) {
  auto total = [](const EntryMemory &entry) {
    uint64_t bytes = entry.arena + entry.workspace;
    for (auto [kind, size] : entry.bound)
      bytes += size;
    return bytes;
  };
  os << "\n";
  if (auto it = entries.find("backward"); it != entries.end()) {
    uint64_t bytes = total(it->second);
    if (auto update = entries.find("update"); update != entries.end())
      for (auto [kind, size] : update->second.bound)
        bytes += sizeBeyond(it->second, kind, size);
    printLine(os, "training", bytes,
              "all of backward, and the parameters and moments of update");
  }
  if (auto it = entries.find("extend"); it != entries.end())
    printLine(os, "inference", total(it->second), "all of extend");
  uint64_t library = 0;
  for (const auto &entry : entries)
    library = std::max(library, entry.second.productWorkspace);
  if (library)
    printLine(os, "cublaslt", library,
              "more where --products=cublaslt or auto uses the library");
}

llvm::Error hybrid::printMemoryPlan(const Plan &plan,
                                    const SymbolValues &symbols,
                                    unsigned threads, llvm::raw_ostream &os) {
  os << "memory plan for";
  for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
    os << " " << stringifyCallSymbol(static_cast<CallSymbol>(symbol)) << "="
       << symbols[symbol];
  if (threads)
    os << ", " << threads << " threads";
  os << "\n";
  llvm::StringMap<EntryMemory> entries;
  for (const PlanEntry &entry : plan.entries) {
    llvm::Expected<EntryMemory> memory =
        planMemory(plan, entry, symbols, threads);
    if (!memory)
      return memory.takeError();
    printEntry(os, entry, symbols, *memory);
    entries[entry.name] = std::move(*memory);
  }
  printTotals(os, entries);
  return llvm::Error::success();
}
