//===- ProgramCache.h - programs that were compiled before -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TARGET_PROGRAMCACHE_H
#define HYBRID_TARGET_PROGRAMCACHE_H

#include "llvm/ADT/StringMap.h"
#include <memory>
#include <mutex>

namespace hybrid {

/// What became of programs that were compiled before, by content and target;
/// for whoever compiles many models with the same programs. May be used by
/// several threads.
template <typename Compiled> class ProgramCache {
public:
  const Compiled *find(llvm::StringRef key) {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = programs.find(key);
    return found == programs.end() ? nullptr : found->second.get();
  }
  void add(llvm::StringRef key, const Compiled &program) {
    std::lock_guard<std::mutex> lock(mutex);
    programs.try_emplace(key, std::make_unique<Compiled>(program));
  }

private:
  std::mutex mutex;
  llvm::StringMap<std::unique_ptr<Compiled>> programs;
};

} // namespace hybrid

#endif // HYBRID_TARGET_PROGRAMCACHE_H
