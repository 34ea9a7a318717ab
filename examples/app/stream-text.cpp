//===- stream-text.cpp - A program that writes text ----------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads a compiled model and its weights, and streams a continuation of the
// prompt until it is long enough or the reader presses control-C. All it needs
// is the runtime library.
//
//   stream-text demo.hbx run "In the beginning" 400
//
// where `run` is the folder of a training run, or a .safetensors file.
//
//===----------------------------------------------------------------------===//

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <hybrid/runtime.hpp>
#include <iostream>

namespace {
volatile std::sig_atomic_t stopped = 0;

/// The whole number that `text` is, or -1.
int64_t readCount(const char *text) {
  char *end = nullptr;
  errno = 0;
  int64_t count = std::strtoll(text, &end, 10);
  return end != text && *end == 0 && errno == 0 ? count : -1;
}
} // namespace

int main(int argc, char **argv) {
  int64_t bytes = argc == 5 ? readCount(argv[4]) : 256;
  if (argc < 4 || argc > 5 || bytes < 1) {
    if (argc == 5)
      std::cerr << "error: '" << argv[4] << "' is not a number of bytes\n";
    std::cerr << "usage: " << argv[0] << " ARTEFACT WEIGHTS PROMPT [BYTES]\n";
    return 2;
  }
  std::string prompt = argv[3];
  std::signal(SIGINT, [](int) { stopped = 1; });
  try {
    hyb::Runtime runtime;
    hyb::Model model(runtime, argv[1]);
    model.loadWeights(argv[2]);

    hyb::Sampling sampling;
    sampling.temperature = 0.8f;
    sampling.topP = 0.95f;
    sampling.maxTokens = bytes;

    // Room for exactly what will be said. A server would have a slot per
    // sequence and reset it for the next.
    hyb::StateOptions room;
    room.context = static_cast<int64_t>(prompt.size()) + sampling.maxTokens;
    hyb::State state(model, room);
    hyb::Context context(model);

    std::cout << prompt << std::flush;
    bool whole =
        context.generate(state, 0, prompt, sampling, [](int32_t token) {
          std::cout << static_cast<char>(token) << std::flush;
          return !stopped;
        });
    std::cout << (whole ? "\n" : "\n[stopped]\n");
    std::cerr << state.length(0) << " tokens in the state of "
              << model.info().name << '\n';
  } catch (const hyb::Error &error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
  return stopped ? 128 + SIGINT : 0;
}
