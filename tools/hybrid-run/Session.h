//===- Session.h - A model opened from the command line ---------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_TOOLS_HYBRID_RUN_SESSION_H
#define HYBRID_TOOLS_HYBRID_RUN_SESSION_H

#include "core/Context.h"

#include <csignal>

namespace CLI {
class App;
} // namespace CLI

namespace hyb::run {

/// Options that several commands share.
struct SessionOptions {
  std::string artefact;
  std::string weights; // file or run folder; empty: none are loaded
  int threads = 0;
  std::string level;
  std::string device = "auto", products = "compiled";
  std::string trace; // file; empty: none
  bool checkFinite = false;

  void addTo(CLI::App &command, bool withWeights);
};

/// Runtime, model and context in the order of their lives.
struct Session {
  static rt::Result<Session> open(const SessionOptions &options);
  /// Writes the trace, if one was asked for; at the end of a command.
  rt::Status saveTrace() const;

  std::unique_ptr<rt::Runtime> runtime;
  std::unique_ptr<rt::Model> model;
  std::unique_ptr<rt::Context> context;
  std::unique_ptr<rt::Trace> trace;
  std::string tracePath;
};

/// The number of the first interrupt (or termination) signal, 0 before; the
/// second one kills. A command that it ended has the exit code of a program
/// that the signal killed, 128 and the number.
extern volatile std::sig_atomic_t interrupted;
void catchInterrupts();

double secondsNow();
/// Since the program was loaded.
double secondsSinceStart();

} // namespace hyb::run

#endif // HYBRID_TOOLS_HYBRID_RUN_SESSION_H
