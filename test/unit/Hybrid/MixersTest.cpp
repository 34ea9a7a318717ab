//===- MixersTest.cpp - the table of mixers -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Hybrid/Mixers.h"

#include "hybrid/Hybrid/HybridDialect.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"
#include <set>

using namespace mlir;
using namespace hybrid;

/// A recurrence of a spec is an operation and a row of the same name.
TEST(MixersTest, OperationsAreRows) {
  MLIRContext context;
  context.loadDialect<HybridDialect>();
  std::set<std::string> operations, rows;
  for (RegisteredOperationName name : context.getRegisteredOperations())
    if (name.hasInterface<RecurrentMixerInterface>())
      operations.insert(name.stripDialect().str());
  for (const MixerRow &row : getMixerRows()) {
    EXPECT_TRUE(rows.insert(row.name.str()).second) << row.name.str();
    EXPECT_EQ(lookupMixerRow(row.name), &row);
  }
  EXPECT_EQ(operations, rows);
  EXPECT_EQ(lookupMixerRow("softmax"), nullptr);
}

/// What hybrid.recurrent's verifier asks of a row.
TEST(MixersTest, RowsAreConsistent) {
  for (const MixerRow &row : getMixerRows()) {
    SCOPED_TRACE(row.name.str());
    EXPECT_EQ(row.writeStrength, row.update == UpdateRule::delta);
    EXPECT_EQ(row.decay == DecayKind::none, row.gate == GateKind::none);
    EXPECT_GT(row.gateNormalizer, 0.0);
    EXPECT_EQ(row.gateRank > 0, row.gate == GateKind::log_sigmoid);
    EXPECT_GE(row.conv, 0);
  }
}
