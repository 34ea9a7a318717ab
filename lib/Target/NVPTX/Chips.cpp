//===- Chips.cpp - what the targets can do -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chips.h"

#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetOptions.h"

using namespace mlir;
using namespace hybrid::nvptx;

constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";

/// PTX 7.0 has everything that the generic path uses; the chips after sm_80
/// need a newer version for their name alone.
constexpr Chip kChips[] = {
    {"sm_80", 70, 163 << 10, false, false},
    {"sm_89", 78, 99 << 10, false, false},
    {"sm_90", 78, 227 << 10, true, false},
    {"sm_90a", 80, 227 << 10, true, true},
    {"sm_100a", 86, 227 << 10, true, true},
    {"sm_120a", 87, 99 << 10, true, true},
};

FailureOr<Chip> hybrid::nvptx::findChip(Operation *op, StringRef name) {
  const Chip *chip =
      llvm::find_if(kChips, [&](const Chip &c) { return c.name == name; });
  if (chip != std::end(kChips))
    return *chip;
  InFlightDiagnostic error = op->emitError("no code for GPU '")
                             << name << "'; use one of ";
  llvm::interleaveComma(kChips, error,
                        [&](const Chip &known) { error << known.name; });
  return error;
}

InFlightDiagnostic hybrid::nvptx::refuseSize(Operation *op, int64_t bytes,
                                             const Chip &chip) {
  if (auto module = op->getParentOfType<ModuleOp>())
    module->setAttr(kTooLargeAttr, UnitAttr::get(op->getContext()));
  InFlightDiagnostic error = op->emitError("a kernel needs ")
                             << bytes << " bytes of shared memory, a block of "
                             << chip.name << " has at most " << chip.sharedBytes
                             << "; use smaller heads";
  bool first = true;
  for (const Chip &other : kChips)
    // Code for an sm_90 is that for sm_90a.
    if (other.sharedBytes >= bytes && other.name != "sm_90") {
      error << (first ? ", or compile for " : " or ") << other.name;
      first = false;
    }
  return error;
}

static std::string printed(int64_t version) {
  return std::to_string(version / 10) + "." + std::to_string(version % 10);
}

FailureOr<std::unique_ptr<llvm::TargetMachine>>
hybrid::nvptx::createTargetMachine(Operation *op, const Chip &chip,
                                   int64_t newestPtx) {
  if (chip.oldestPtx > newestPtx)
    return op->emitError("code for ")
           << chip.name << " needs PTX " << printed(chip.oldestPtx)
           << ", the newest allowed is " << printed(newestPtx)
           << "; update the driver or choose an older chip";
  static const bool initialized = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialized;
  llvm::Triple triple(kTriple);
  std::string unknown;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, unknown);
  if (!target)
    return op->emitError("LLVM has no target ") << kTriple;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, chip.name, "+ptx" + std::to_string(chip.oldestPtx), options,
      std::nullopt));
}
