//===- Devices.cpp - what machines can do at most -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "hybrid/Report/Page.h"

using namespace hybrid;

llvm::ArrayRef<Device> hybrid::getDevices() {
  static const Device devices[] = {
      {"cpu", "CPU, two cores", "cpu", 257e9,
       "a plain f32 product and a copy, as docs/performance.md measured them",
       45e9},
      {"h200", "NVIDIA H200", "cuda", 494.7e12 / 3,
       "f32 products as three in tf32, by the data sheet", 4.8e12},
      {"h200-bf16", "NVIDIA H200, bf16 products", "cuda", 989.4e12,
       "dense bf16 products, by the data sheet", 4.8e12},
  };
  return devices;
}
