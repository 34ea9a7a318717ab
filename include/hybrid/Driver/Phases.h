//===- Phases.h - the way of a spec, by name -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_DRIVER_PHASES_H
#define HYBRID_DRIVER_PHASES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace hybrid {

enum class Phase {
  Spec,
  Stack,
  Graph,
  Grad,
  Fuse,
  Schedule,
  Tile,
  Plan,
  Target,
  Artefact,
};

struct PhaseInfo {
  Phase phase;
  llvm::StringLiteral name;
  /// What the module is after the phase; one line of `--help`.
  llvm::StringLiteral summary;
  /// The passes of the phase as one would write them for `hybrid-opt`;
  /// `%target` stands for the target. Empty for phases that are not passes.
  llvm::StringLiteral pipeline;
};

/// All phases in the order a spec passes through them.
llvm::ArrayRef<PhaseInfo> phases();

const PhaseInfo &phaseInfo(Phase phase);

/// The pipeline text of a phase for `target`.
std::string phasePipeline(Phase phase, llvm::StringRef target);

} // namespace hybrid

#endif // HYBRID_DRIVER_PHASES_H
