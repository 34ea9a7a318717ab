//===- Container.h - the bytes of a .hbx file -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_ARTEFACT_CONTAINER_H
#define HYBRID_ARTEFACT_CONTAINER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace hybrid {

struct ArtefactSection {
  /// At most 16 bytes each; the pair is unique in an artefact.
  std::string kind, name;
  std::string bytes;
};

/// The container with these sections, in this order. The same sections give the
/// same bytes: there is no time stamp, path or host name in it.
llvm::Expected<std::string>
serialiseArtefact(llvm::ArrayRef<ArtefactSection> sections);

/// Puts `bytes` at `path`, which afterwards holds either its old content or all
/// of the new one: written to a temporary file in the same folder,
/// synchronised, renamed. Nothing is left behind on failure.
llvm::Error writeFileAtomically(llvm::StringRef path, llvm::StringRef bytes);

} // namespace hybrid

#endif // HYBRID_ARTEFACT_CONTAINER_H
