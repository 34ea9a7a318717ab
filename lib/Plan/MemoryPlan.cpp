//===- MemoryPlan.cpp - bytes a plan takes for given capacities -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Plan/MemoryPlan.h"

#include "core/ArenaLayout.h"
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
  std::optional<int64_t> bytes = 4; // f32 and i32 alike
  for (AffineExpr size : buffer.sizes) {
    std::optional<int64_t> value = evaluate(size, symbols);
    bytes = bytes && value && *value >= 0 ? llvm::checkedMul<int64_t>(*bytes, *value)
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

llvm::Expected<EntryMemory> hybrid::planMemory(const Plan &plan,
                                               const PlanEntry &entry,
                                               const SymbolValues &symbols) {
  EntryMemory memory;
  std::vector<hyb::ArenaBuffer> arena;
  llvm::MapVector<int, uint64_t> bound;
  for (const PlanBuffer &buffer : entry.buffers) {
    llvm::Expected<uint64_t> bytes = bytesOf(buffer, symbols);
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
    return std::make_pair(b.bytes, a.buffer) < std::make_pair(a.bytes, b.buffer);
  });
  for (const PlanLaunch &launch : entry.launches)
    for (const PlanAlternative &alternative : launch.alternatives)
      memory.scratch =
          std::max(memory.scratch, plan.kernels[alternative.kernel].scratch);
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

llvm::Error hybrid::printMemoryPlan(const Plan &plan, const SymbolValues &symbols,
                                    llvm::raw_ostream &os) {
  static constexpr size_t shownBuffers = 8;
  os << "memory plan for";
  for (unsigned symbol = 0; symbol < symbols.size(); ++symbol)
    os << " " << stringifyCallSymbol(static_cast<CallSymbol>(symbol)) << "="
       << symbols[symbol];
  os << "\n";
  for (const PlanEntry &entry : plan.entries) {
    llvm::Expected<EntryMemory> memory = planMemory(plan, entry, symbols);
    if (!memory)
      return memory.takeError();
    os << "\n" << entry.name << ": " << entry.launches.size() << " launches\n"
       << llvm::format("  arena    %12s", formatBytes(memory->arena).c_str())
       << "  (" << formatBytes(memory->withoutReuse) << " without reuse)\n"
       << llvm::format("  scratch  %12s", formatBytes(memory->scratch).c_str())
       << "  per thread\n";
    for (auto [kind, bytes] : memory->bound)
      os << llvm::format("  %-14s %6s", stringifyBufferKind(kind).str().c_str(),
                         formatBytes(bytes).c_str())
         << "\n";
    for (const EntryMemory::Buffer &buffer :
         llvm::ArrayRef(memory->buffers).take_front(shownBuffers))
      os << llvm::format("    %10s", formatBytes(buffer.bytes).c_str()) << "  "
         << buffer.buffer->name << "  launches " << buffer.buffer->first << "-"
         << buffer.buffer->last << "\n";
  }
  return llvm::Error::success();
}
