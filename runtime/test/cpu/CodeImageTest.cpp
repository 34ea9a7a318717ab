//===- CodeImageTest.cpp -------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cpu/CodeImage.h"

#include "../fixture/FixtureModel.h"
#include "cpu/KernelBorder.h"

#include <elf.h>
#include <gtest/gtest.h>

using namespace hyb::rt;
using hyb::test::fixtureObject;

namespace {

Bytes bytesOf(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

std::string refusal(const std::string &object) {
  auto image = CodeImage::load(bytesOf(object));
  return image.ok() ? "accepted" : image.status().message();
}

void expectRefused(const std::string &object, const std::string &reason) {
  std::string message = refusal(object);
  EXPECT_NE(message.find(reason), std::string::npos) << message;
}

} // namespace

TEST(CodeImage, RunsCodeThroughRelocatedPointers) {
  for (const char *name : {"x86-64", "gnu-hash"}) {
    std::string object = fixtureObject(name);
    ASSERT_FALSE(object.empty());
    auto image = CodeImage::load(bytesOf(object));
    ASSERT_TRUE(image.ok()) << image.status().message();
    object.clear(); // the image is a copy
    EXPECT_EQ(image->function("no such kernel"), nullptr);
    auto kernel = reinterpret_cast<Kernel>(
        reinterpret_cast<uintptr_t>(image->function("through_pointers")));
    ASSERT_TRUE(kernel);
    float result = 0;
    KernelView view = {&result, {1}, {1}};
    kernel(&view, nullptr, 0, nullptr);
    EXPECT_EQ(result, 1.0f);
    kernel(&view, nullptr, 1, nullptr);
    EXPECT_EQ(result, 2.0f);
  }
}

TEST(CodeImage, RefusesWhatKernelsMayNotHave) {
  expectRefused(fixtureObject("imports"), "imp");
  expectRefused(fixtureObject("thread-local"), "thread-local storage");
  expectRefused(fixtureObject("initialiser"), "initialise nothing");
  expectRefused("", "too short");
  expectRefused(std::string(100, 'x'), "not a 64-bit ELF shared object");
}

TEST(CodeImage, RefusesOtherMachines) {
  std::string object = fixtureObject("x86-64");
  Elf64_Half machine = EM_AARCH64;
  std::memcpy(object.data() + offsetof(Elf64_Ehdr, e_machine), &machine,
              sizeof(machine));
  auto image = CodeImage::load(bytesOf(object));
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.status().code(), HYB_UNSUPPORTED);
  EXPECT_NE(image.status().message().find("is for ELF machine 183"),
            std::string::npos)
      << image.status().message();
}

TEST(CodeImage, RefusesWritableCode) {
  std::string object = fixtureObject("x86-64");
  Elf64_Ehdr header;
  std::memcpy(&header, object.data(), sizeof(header));
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    char *place = object.data() + header.e_phoff + i * sizeof(Elf64_Phdr);
    Elf64_Phdr segment;
    std::memcpy(&segment, place, sizeof(segment));
    segment.p_flags |= PF_W | PF_X;
    std::memcpy(place, &segment, sizeof(segment));
  }
  expectRefused(object, "writable and executable");
}

// The checksum of the artefact finds damage first; the loader must hold
// without.
TEST(CodeImage, TruncationsAndFlippedBytesDoNoHarm) {
  std::string object = fixtureObject("x86-64");
  for (size_t size = 0; size < object.size(); size += 7)
    (void)refusal(object.substr(0, size));
  size_t accepted = 0;
  for (size_t i = 0; i < object.size(); ++i) {
    for (int flip : {0x01, 0x80, 0xff}) {
      object[i] = static_cast<char>(object[i] ^ flip);
      accepted += refusal(object) == "accepted";
      object[i] = static_cast<char>(object[i] ^ flip);
    }
  }
  EXPECT_GT(accepted, 0u) << "flips in instructions cannot be seen";
}
