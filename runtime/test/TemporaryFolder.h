//===- TemporaryFolder.h - A folder for one test ----------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_TEST_TEMPORARYFOLDER_H
#define HYBRID_RUNTIME_TEST_TEMPORARYFOLDER_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace hyb::test {

/// Made by the constructor, removed with its content by the destructor.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "hybrid-XXXXXX").string();
    if (::mkdtemp(pattern.data()))
      folder = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  std::string path(const std::string &name) const { return folder / name; }

  std::string write(const std::string &name, const std::string &content) const {
    std::ofstream(folder / name, std::ios::binary) << content;
    return path(name);
  }

  std::string read(const std::string &name) const {
    std::ifstream file(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  size_t fileCount() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder),
                      std::filesystem::directory_iterator()));
  }

private:
  std::filesystem::path folder;
};

} // namespace hyb::test

#endif // HYBRID_RUNTIME_TEST_TEMPORARYFOLDER_H
