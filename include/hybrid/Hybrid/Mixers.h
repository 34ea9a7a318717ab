//===- Mixers.h - the table of mixers -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A recurrence is a row: how a token writes, what decays, how the decay is
// computed from the layer's input, and what stands around it. The operation of
// the same mnemonic in SpecOps.td holds what a spec may change of the row.
// hybrid-expand-stack writes the row into hybrid.recurrent; nothing later asks
// for a mixer by name.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_MIXERS_H
#define HYBRID_HYBRID_MIXERS_H

#include "hybrid/Hybrid/HybridOps.h"

namespace hybrid {

/// One mixer of the recurrence family. State per head: S, f32
/// [head_dim, value_dim]; the output is read after the update, with scale
/// head_dim^(-1/2).
struct MixerRow {
  llvm::StringLiteral name; // mnemonic of its operation in SpecOps.td
  UpdateRule update;
  DecayKind decay;
  GateKind gate;
  double gateNormalizer; // divides the log decay
  int64_t gateRank;      // rows of the gate's first projection; 0 without one
  std::optional<double> gateBias; // first value of the bias; drawn when absent
  bool writeStrength; // whether beta = sigmoid(W_b x) scales what is written
  std::optional<NormKind> qkNorm; // of q and k per head
  int64_t conv;                   // width of the short convolution; 0 for none
  bool silu; // SiLU on q, k and v even without a convolution
  OutputStage output;
};

/// All rows.
llvm::ArrayRef<MixerRow> getMixerRows();

/// The row of that name, or null.
const MixerRow *lookupMixerRow(llvm::StringRef name);

/// Writes `mixer` with its row and its own attributes as a hybrid.recurrent.
/// `window` and `stride` are those of a hybrid.swla around it, or absent.
RecurrentOp createRecurrent(mlir::OpBuilder &builder,
                            RecurrentMixerInterface mixer,
                            std::optional<int64_t> window = std::nullopt,
                            std::optional<int64_t> stride = std::nullopt);

} // namespace hybrid

#endif // HYBRID_HYBRID_MIXERS_H
