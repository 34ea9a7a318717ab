//===- Phases.cpp - the way of a spec, by name -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Phases.h"

#include "llvm/ADT/Twine.h"

using namespace hybrid;

static constexpr PhaseInfo table[] = {
    {Phase::Spec, "spec", "the spec as parsed and verified", ""},
    {Phase::Stack, "stack", "every layer and head group explicit",
     "hybrid-expand-stack"},
    {Phase::Graph, "graph", "one function on tensors per entry point",
     "hybrid-build-graph,hybrid-merge-attention"},
    {Phase::Grad, "grad", "with the backward function", "hybrid-differentiate"},
    {Phase::Fuse, "fuse", "neighbours joined into row-wise regions",
     "hybrid-fuse-rowwise"},
    {Phase::Schedule, "schedule", "launches of tile programs",
     "hybrid-schedule{target=%target}"},
    // The programs alone: what a backward pass computes again is twice the same
    // launch, which must not become one.
    {Phase::Tile, "tile", "the tile programs simplified",
     "tile.program(canonicalize,cse)"},
    {Phase::Plan, "plan", "launch list over an arena (JSON)", ""},
    {Phase::Target, "target", "code of the tile programs", ""},
    {Phase::Artefact, "artefact", "the .hbx file", ""},
};

llvm::ArrayRef<PhaseInfo> hybrid::phases() { return table; }

const PhaseInfo &hybrid::phaseInfo(Phase phase) {
  return table[static_cast<unsigned>(phase)];
}

std::string hybrid::phasePipeline(Phase phase, llvm::StringRef target) {
  llvm::StringRef text = phaseInfo(phase).pipeline;
  // The matrix units of GPUs read narrow types; products on the CPU are f32.
  if (phase == Phase::Tile && target.starts_with("cuda"))
    return "tile.program(hybrid-narrow-products,canonicalize,cse)";
  size_t place = text.find("%target");
  if (place == llvm::StringRef::npos)
    return text.str();
  return (text.take_front(place) + target + text.drop_front(place + 7)).str();
}
