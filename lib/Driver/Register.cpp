//===- Register.cpp - what the tools know -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Driver/Register.h"

#include "hybrid/Fuse/Passes.h"
#include "hybrid/Grad/Passes.h"
#include "hybrid/Graph/Passes.h"
#include "hybrid/Hybrid/HybridDialect.h"
#include "hybrid/Plan/Passes.h"
#include "hybrid/Report/Passes.h"
#include "hybrid/Schedule/Passes.h"
#include "hybrid/Stack/Passes.h"
#include "hybrid/Target/CPU/Passes.h"
#include "hybrid/Target/NVPTX/Hopper/HopperOps.h"
#include "hybrid/Target/NVPTX/Passes.h"
#include "hybrid/Tile/Passes.h"
#include "hybrid/Tile/TileDialect.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"

void hybrid::registerAllHybridDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<HybridDialect, tile::TileDialect, hopper::HopperDialect>();
}

void hybrid::registerAllHybridPasses() {
  registerHybridStackPasses();
  registerHybridGraphPasses();
  registerHybridGradPasses();
  registerHybridFusePasses();
  registerHybridSchedulePasses();
  registerHybridTilePasses();
  registerHybridPlanPasses();
  registerHybridReportPasses();
  registerHybridTargetCPUPasses();
  registerHybridTargetNVPTXPasses();
}
