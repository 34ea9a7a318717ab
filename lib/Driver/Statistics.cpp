//===- Statistics.cpp - what the phases did, in numbers -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Statistics.h"

#include "hybrid/Hybrid/Counter.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace hybrid;

void Statistics::add(StringRef phase, StringRef pass, StringRef name,
                     StringRef description, uint64_t value) {
  for (Number &number : numbers)
    if (number.phase == phase && number.pass == pass && number.name == name) {
      number.value += value;
      return;
    }
  numbers.push_back(
      {phase.str(), pass.str(), name.str(), description.str(), value});
}

namespace {

class Watcher : public PassInstrumentation {
public:
  Watcher(Statistics &statistics, StringRef phase)
      : statistics(statistics), phase(phase) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    note(pass, "ops-before", "Operations before the pass", op);
  }
  void runAfterPass(Pass *pass, Operation *op) override {
    note(pass, "ops-after", "Operations after the pass", op);
    for (const Counter *counter : Counter::of(*pass))
      statistics.add(phase, pass->getArgument(), counter->name(),
                     counter->description(), counter->value());
  }

private:
  void note(Pass *pass, StringRef name, StringRef description, Operation *op) {
    // Adaptors, which run passes on nested operations, have no name.
    if (pass->getArgument().empty())
      return;
    uint64_t count = 0;
    op->walk([&](Operation *) { ++count; });
    statistics.add(phase, pass->getArgument(), name, description, count);
  }

  Statistics &statistics;
  std::string phase;
};

} // namespace

void Statistics::watch(PassManager &passes, StringRef phase) {
  passes.addInstrumentation(std::make_unique<Watcher>(*this, phase));
}

void Statistics::print(llvm::raw_ostream &os) const {
  os << "statistics\n";
  StringRef phase, pass;
  for (const Number &number : numbers) {
    if (number.phase != phase || number.pass != pass) {
      os << number.phase;
      if (!number.pass.empty())
        os << ", " << number.pass;
      os << "\n";
    }
    phase = number.phase;
    pass = number.pass;
    os << llvm::formatv("  {0,12}  {1,-22}  {2}\n", number.value, number.name,
                        number.description);
  }
  if (remarks.empty())
    return;
  os << "remarks\n";
  for (const auto &[id, count] : remarks)
    os << llvm::formatv("  {0,12}  {1}\n", count, id);
}

void Statistics::printAsJSON(llvm::raw_ostream &os) const {
  llvm::json::Array rows;
  for (const Number &number : numbers)
    rows.push_back(llvm::json::Object{{"phase", number.phase},
                                      {"pass", number.pass},
                                      {"name", number.name},
                                      {"value", number.value}});
  llvm::json::Object byId;
  for (const auto &[id, count] : remarks)
    byId[id] = count;
  os << llvm::formatv("{0:2}\n", llvm::json::Value(llvm::json::Object{
                                     {"statistics", std::move(rows)},
                                     {"remarks", std::move(byId)}}));
}
