//===- Statistics.h - what the phases did, in numbers -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_DRIVER_STATISTICS_H
#define HYBRID_DRIVER_STATISTICS_H

#include "mlir/Pass/PassManager.h"
#include <map>
#include <string>
#include <vector>

namespace hybrid {

/// Numbers of one compilation: of each pass the operations before and after it
/// and its own counters (documented with the pass), of the later phases what
/// they made, and how often each remark was given.
class Statistics {
public:
  /// Adds to a number. Numbers are kept in the order in which they first came.
  void add(llvm::StringRef phase, llvm::StringRef pass, llvm::StringRef name,
           llvm::StringRef description, uint64_t value);
  void addRemark(llvm::StringRef id) { ++remarks[id.str()]; }

  /// Counts what the passes of a phase do. This must outlive the manager.
  void watch(mlir::PassManager &passes, llvm::StringRef phase);

  void print(llvm::raw_ostream &os) const;
  void printAsJSON(llvm::raw_ostream &os) const;

private:
  struct Number {
    std::string phase, pass, name, description;
    uint64_t value;
  };
  std::vector<Number> numbers;
  std::map<std::string, uint64_t> remarks;
};

} // namespace hybrid

#endif // HYBRID_DRIVER_STATISTICS_H
