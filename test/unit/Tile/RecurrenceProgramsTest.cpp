//===- RecurrenceProgramsTest.cpp - the programs as files -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test/Tile/programs holds the programs of the family as a reader sees them,
// each with the schedule record of a target. Here they are what the builders
// make, and of that very shape they are right.
//
//===----------------------------------------------------------------------===//

#include "RecurrenceHarness.h"
#include "hybrid/Hybrid/HybridDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdlib>

using namespace hybrid::tile;
using namespace hybrid::tile::test;

namespace {
struct Entry {
  const char *file;
  BuildProgram build;
  RecurrenceShape shape;
};

RecurrenceShape wide(RecurrenceUpdate update, RecurrenceDecay decay) {
  RecurrenceShape shape;
  shape.update = update;
  shape.decay = decay;
  shape.heads = shape.kvHeads = 2;
  shape.keyDim = shape.valueDim = 128;
  shape.scale = 0.088388346f; // a float, as the programs hold it
  return shape;
}

RecurrenceShape withState(RecurrenceShape shape) {
  shape.hasState = true;
  return shape;
}

RecurrenceShape inWindow(RecurrenceShape shape) {
  shape.window = 256;
  shape.stride = 64;
  return shape;
}

RecurrenceShape inParts(RecurrenceShape shape) {
  shape.part = 256;
  return shape;
}

std::vector<Entry> entries() {
  auto additive = wide(RecurrenceUpdate::Additive, RecurrenceDecay::PerHead);
  auto channel = wide(RecurrenceUpdate::Additive, RecurrenceDecay::PerChannel);
  auto delta = wide(RecurrenceUpdate::Delta, RecurrenceDecay::PerHead);
  return {
      {"recurrence-additive-forward", buildRecurrenceForward, additive},
      {"recurrence-additive-backward", buildRecurrenceBackward, additive},
      {"recurrence-channel-forward", buildRecurrenceForward, channel},
      {"recurrence-channel-backward", buildRecurrenceBackward, channel},
      {"recurrence-delta-forward", buildRecurrenceForward, withState(delta)},
      {"recurrence-delta-backward", buildRecurrenceBackward, delta},
      {"recurrence-delta-step", buildRecurrenceStep, withState(delta)},
      {"recurrence-delta-window", buildRecurrenceForward, inWindow(delta)},
      {"recurrence-delta-summary", buildRecurrenceSummary, inParts(delta)},
      {"recurrence-delta-combine", buildRecurrenceCombine,
       withState(inParts(delta))},
      {"recurrence-delta-apply", buildRecurrenceApply, inParts(delta)},
  };
}

std::string print(ProgramOp program) {
  std::string text;
  llvm::raw_string_ostream os(text);
  program->print(os, mlir::OpPrintingFlags().useLocalScope());
  return text;
}

std::string pathOf(const Entry &entry) {
  return std::string(HYBRID_TILE_PROGRAMS) + "/" + entry.file + ".mlir";
}

std::string read(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

/// Puts the program in place of the one in the file.
void update(const std::string &path, const std::string &program) {
  std::string text = "\n" + read(path);
  size_t begin = text.find("\ntile.program @");
  if (begin == std::string::npos) {
    text += "\n" + program + "\n";
  } else {
    size_t end = text.find("\n}\n", begin) + 3;
    text = text.substr(0, begin + 1) + program + "\n" + text.substr(end);
  }
  std::error_code error;
  llvm::raw_fd_ostream(path, error) << llvm::StringRef(text).drop_front();
  EXPECT_FALSE(error) << path << ": " << error.message();
}
} // namespace

TEST(RecurrencePrograms, FilesAreWhatTheBuildersMake) {
  for (const Entry &entry : entries()) {
    Built built(entry.build, entry.shape);
    if (std::getenv("HYBRID_UPDATE_PROGRAMS"))
      update(pathOf(entry), print(built.program));
    // The files hold the graph operations that the programs stand for, too.
    built.context.loadDialect<hybrid::HybridDialect, mlir::func::FuncDialect>();
    auto file =
        mlir::parseSourceFile<mlir::ModuleOp>(pathOf(entry), &built.context);
    ASSERT_TRUE(file) << pathOf(entry);
    EXPECT_EQ(print(*file->getOps<ProgramOp>().begin()), print(built.program))
        << pathOf(entry) << " is old; run with HYBRID_UPDATE_PROGRAMS=1 "
        << "to write it again";
    EXPECT_FALSE(file->getOps<ScheduleOp>().empty())
        << pathOf(entry) << " has no schedule record";
  }
}

TEST(RecurrencePrograms, WholeSegmentsAgreeWithTheDefinition) {
  for (const Entry &entry : entries()) {
    bool isForward = entry.build == buildRecurrenceForward;
    bool isStep = entry.build == buildRecurrenceStep;
    if (!isForward && !isStep && entry.build != buildRecurrenceBackward)
      continue;
    SCOPED_TRACE(entry.file);
    // Short where the definition walks every history anew.
    int64_t length = isStep ? 5 : 70;
    RecurrenceShape shape = entry.shape;
    shape.heads = shape.kvHeads = 1;
    Call call(shape, {{length}}, shape.hasState ? 1 : 0);
    fill(call);
    if (isForward || isStep)
      expectOutputs(call, kExact, Arithmetic::f64, entry.build);
    else
      expectGradients(call);
  }
}

TEST(RecurrencePrograms, PartsAgreeWithTheDefinition) {
  RecurrenceShape shape = withState(
      inParts(wide(RecurrenceUpdate::Delta, RecurrenceDecay::PerHead)));
  shape.heads = shape.kvHeads = 1;
  Call call(shape, {{300}}, 1);
  fill(call);
  HostBuffer finalState = call.state;
  HostBuffer expected = define(call, &finalState);
  EXPECT_LE(difference(runSplit(call), expected, call), kExact);
  EXPECT_LE(difference(call.state, finalState), kExact);
}
