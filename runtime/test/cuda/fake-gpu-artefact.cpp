//===- fake-gpu-artefact.cpp - An artefact for the fake GPU --------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   fake-gpu-artefact ARTEFACT OUTPUT
//
// Repacks a compiled model for the processor such that the fake driver runs it:
// the plan with rows of a GPU, and the processor's code in the place of a
// cubin. All of the runtime's part in running a model on a GPU can then be
// tested with models that the compiler made.
//
//===----------------------------------------------------------------------===//

#include "../HbxBuilder.h"
#include "FakeImage.h"
#include "core/Plan.h"
#include "io/AtomicFile.h"
#include "io/HbxReader.h"
#include "io/Json.h"

#include <cstdlib>

using namespace hyb::rt;
using namespace hyb::test;

namespace {

std::string textOf(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

/// The bytes of an element of each view that a kernel is launched with.
std::vector<std::string> viewWidths(const Plan &plan) {
  std::vector<std::string> widths(plan.kernels.size());
  for (const auto &[name, entry] : plan.entries)
    for (const PlanLaunch &launch : entry.launches)
      for (const PlanAlternative &alternative : launch.alternatives) {
        std::string &digits = widths[alternative.kernel];
        digits.clear();
        for (const PlanView &view : alternative.views)
          digits +=
              std::to_string(elementBytes(entry.buffers[view.buffer].type));
      }
  return widths;
}

Status convert(const std::string &from, const std::string &to) {
  HYB_ASSIGN(MappedFile file, MappedFile::open(from));
  HYB_ASSIGN(HbxReader artefact, HbxReader::parse(file.bytes()));
  HYB_ASSIGN(Bytes planText, artefact.get("plan", "cpu"));
  const HbxReader::Section *code = nullptr;
  for (const char *level : {"x86-64", "x86-64-v3", "x86-64-v4"})
    if (!code)
      code = artefact.find("code", level);
  if (!code)
    return failure(HYB_UNSUPPORTED, "%s has no code for the processor",
                   from.c_str());
  HYB_ASSIGN(Plan plan, Plan::parse(planText));
  HYB_ASSIGN(JsonDocument rows, parseJsonObject(planText, "plan"));
  std::vector<std::string> views = viewWidths(plan);
  std::vector<FakeKernel> kernels;
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    Json &row = rows["kernels"][i];
    row.erase("scratch");
    row["shared"] = 1024;
    row["threads"] = 128;
    kernels.push_back(
        {plan.kernels[i].symbol, views[i], plan.kernels[i].scratchBytes});
  }
  std::vector<SectionToBuild> sections;
  for (const HbxReader::Section &section : artefact.sections())
    if (section.kind != "cubin" && section.kind != "ptx" &&
        (section.kind != "plan" || section.name == "cpu"))
      sections.push_back({section.kind, section.name, textOf(section.content)});
  sections.push_back({"plan", kFakeChip, rows.dump()});
  sections.push_back(
      {"cubin", kFakeChip, fakeImage(kernels, textOf(code->content))});
  return writeFileAtomically(to, buildHbx(sections));
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s ARTEFACT OUTPUT\n", argv[0]);
    return 2;
  }
  Status status = convert(argv[1], argv[2]);
  if (!status.ok())
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
