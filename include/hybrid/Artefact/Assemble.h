//===- Assemble.h - the sections of an artefact -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_ARTEFACT_ASSEMBLE_H
#define HYBRID_ARTEFACT_ASSEMBLE_H

#include "hybrid/Artefact/Container.h"
#include "hybrid/Graph/ModelTables.h"
#include "hybrid/Plan/Plan.h"

namespace hybrid {

/// The plan and the code of one target.
struct ArtefactTarget {
  /// `cpu`, or `cuda:` and a chip.
  std::string name;
  Plan plan;
  /// Kind `code` named by the level of the CPU, `ptx` and `cubin` named by the
  /// chip.
  std::vector<ArtefactSection> code;

  /// What its plan is named by in the container.
  llvm::StringRef planName() const {
    return llvm::StringRef(name).rsplit(':').second.empty()
               ? llvm::StringRef(name)
               : llvm::StringRef(name).rsplit(':').second;
  }
};

/// "hybridc 0.1.0, LLVM 22.1.8": what made an artefact.
llvm::StringRef toolchainName();

/// The bytes of an artefact for some targets. `spec` is the text that was
/// compiled; parameters and states are the same for every target.
llvm::Expected<std::string>
assembleArtefact(llvm::StringRef spec, const ModelTables &tables,
                 llvm::ArrayRef<ArtefactTarget> targets);

} // namespace hybrid

#endif // HYBRID_ARTEFACT_ASSEMBLE_H
