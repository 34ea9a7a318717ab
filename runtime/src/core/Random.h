//===- Random.h - Numbers that depend on their place alone ------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_CORE_RANDOM_H
#define HYBRID_RUNTIME_CORE_RANDOM_H

#include <array>
#include <cstdint>
#include <string_view>

namespace hyb::rt {

/// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as
/// easy as 1, 2, 3", SC 2011): a keyed bijection of a counter. There is no
/// state, so nothing to save in a checkpoint and no order that matters.
inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                      std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xD2511F53) * counter[0];
    uint64_t b = uint64_t(0xCD9E8D57) * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// The numbers of one purpose ("stream") under one seed.
class RandomStream {
public:
  RandomStream(uint64_t seed, uint64_t number) : key(seed), stream(number) {}
  RandomStream(uint64_t seed, std::string_view name)
      : RandomStream(seed, hash(name)) {}

  uint64_t seed() const { return key; }
  uint64_t number() const { return stream; }

  /// Two numbers in [0, 1) of 53 bits, at a place.
  std::array<double, 2> uniforms(uint64_t place) const {
    std::array<uint32_t, 4> words = this->words(place);
    auto fraction = [](uint32_t high, uint32_t low) {
      uint64_t bits = (uint64_t(high) << 32 | low) >> 11;
      return static_cast<double>(bits) * 0x1p-53;
    };
    return {fraction(words[0], words[1]), fraction(words[2], words[3])};
  }
  /// 32 bits, at a place.
  uint32_t word(uint64_t place) const { return words(place)[0]; }
  double uniform(uint64_t place) const { return uniforms(place)[0]; }
  /// A number in [0, count).
  uint64_t below(uint64_t count, uint64_t place) const {
    return static_cast<uint64_t>(uniform(place) * static_cast<double>(count));
  }

private:
  std::array<uint32_t, 4> words(uint64_t place) const {
    return philox(
        {static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32),
         static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
        {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
  }
  /// FNV-1a.
  static uint64_t hash(std::string_view name) {
    uint64_t value = 0xcbf29ce484222325;
    for (unsigned char letter : name)
      value = (value ^ letter) * 0x100000001b3;
    return value;
  }

  uint64_t key, stream;
};

/// What the random keys of one call of a plan follow from.
struct CallSeed {
  uint64_t seed = 0; // of the run
  uint64_t call = 0; // no two calls of a run have the same

  /// The key for the part of the model with this path.
  uint32_t keyOf(std::string_view path) const {
    return RandomStream(seed, path).word(call);
  }
};

} // namespace hyb::rt

#endif // HYBRID_RUNTIME_CORE_RANDOM_H
