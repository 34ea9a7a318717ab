//===- FakeImage.h - Processor code in the place of GPU code ----*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the fake driver accepts as a cubin: a line per kernel with its symbol,
// the bytes of an element of each of its views (a digit each), the scratch it
// wants and the number of its tensor maps, an empty line, and an ELF shared
// object of the processor. Both sides run tasks with the same views, so an
// artefact for the processor becomes one for the fake GPU by repacking.
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TEST_CUDA_FAKEIMAGE_H
#define HYBRID_RUNTIME_TEST_CUDA_FAKEIMAGE_H

#include <cstdint>
#include <string>
#include <vector>

namespace hyb::test {

inline const char *kFakeMagic = "fake cubin";
/// What the fake GPU says it is, and the chip of its code.
inline constexpr int kFakeMajor = 9, kFakeMinor = 0;
inline const char *kFakeChip = "sm_90a";

struct FakeKernel {
  std::string symbol;
  /// A digit per view: "44" is two of four bytes an element.
  std::string views;
  int64_t scratch;
  size_t maps = 0;
};

inline std::string fakeImage(const std::vector<FakeKernel> &kernels,
                             const std::string &object) {
  std::string text =
      std::string(kFakeMagic) + " " + std::to_string(object.size()) + "\n";
  for (const FakeKernel &kernel : kernels)
    text += kernel.symbol + " " + (kernel.views.empty() ? "-" : kernel.views) +
            " " + std::to_string(kernel.scratch) + " " +
            std::to_string(kernel.maps) + "\n";
  return text + "\n" + object;
}

} // namespace hyb::test

#endif // HYBRID_RUNTIME_TEST_CUDA_FAKEIMAGE_H
