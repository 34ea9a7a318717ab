//===- Counter.h - a number that a pass reports -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_COUNTER_H
#define HYBRID_HYBRID_COUNTER_H

#include "mlir/Pass/Pass.h"
#include <atomic>

namespace hybrid {

/// What a `Statistic` of a pass table is in hybridc. LLVM's own keeps neither
/// name nor number in a build without statistics, such as Debian's.
/// `hybridc --statistics` prints these.
class Counter : public mlir::Pass::Statistic {
public:
  Counter(mlir::Pass *owner, const char *name, const char *description)
      : Statistic(owner, name, description), text(name), meaning(description) {}

  Counter &operator=(uint64_t number) {
    count = number;
    return *this;
  }
  Counter &operator+=(uint64_t number) {
    count += number;
    return *this;
  }
  Counter &operator++() { return *this += 1; }
  llvm::StringRef name() const { return text; }
  llvm::StringRef description() const { return meaning; }
  uint64_t value() const { return count; }

  /// The counters of a pass of hybridc; none of another's.
  static llvm::SmallVector<const Counter *> of(mlir::Pass &pass) {
    llvm::SmallVector<const Counter *> counters;
    if (pass.getArgument().starts_with("hybrid-"))
      for (mlir::Pass::Statistic *statistic : pass.getStatistics())
        counters.push_back(static_cast<const Counter *>(statistic));
    return counters;
  }

private:
  llvm::StringRef text, meaning;
  std::atomic<uint64_t> count = 0;
};

} // namespace hybrid

#endif // HYBRID_HYBRID_COUNTER_H
