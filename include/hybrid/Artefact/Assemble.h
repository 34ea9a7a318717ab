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

/// Code of one level of a target, as `code` section.
struct ArtefactCode {
  std::string level;
  std::string elf;
};

/// The bytes of an artefact for the CPU. `spec` is the text that was compiled.
llvm::Expected<std::string> assembleArtefact(llvm::StringRef spec,
                                             const ModelTables &tables,
                                             const Plan &plan,
                                             llvm::ArrayRef<ArtefactCode> code);

} // namespace hybrid

#endif // HYBRID_ARTEFACT_ASSEMBLE_H
