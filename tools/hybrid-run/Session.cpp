//===- Session.cpp -------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Session.h"

#include "OptionChecks.h"

#include "io/AtomicFile.h"
#include "train/TrainingRun.h"

#include <CLI/CLI.hpp>
#include <chrono>

namespace hyb::run {

using namespace hyb::rt;

volatile std::sig_atomic_t interrupted = 0;

void catchInterrupts() {
  auto handler = [](int signal) {
    interrupted = signal;
    std::signal(signal, SIG_DFL);
  };
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
}

double secondsNow() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace {
const double started = secondsNow();
} // namespace

double secondsSinceStart() { return secondsNow() - started; }

void SessionOptions::addTo(CLI::App &command, bool withWeights) {
  command.add_option("artefact", artefact, "compiled model (.hbx)")->required();
  if (withWeights) {
    command
        .add_option("--weights", weights,
                    "folder of a training run, or a .safetensors file")
        ->required()
        ->group("Model");
    command
        .add_flag("--check-finite", checkFinite,
                  "refuse weights that hold a NaN or an infinity, and stop at "
                  "the first kernel that gives one, by name; slow")
        ->group("Model");
  }
  command
      .add_option("--device", device,
                  "auto, cpu or cuda:N; auto: the first GPU, if there is one "
                  "and the artefact has code for it")
      ->capture_default_str()
      ->check(deviceName())
      ->group("Machine");
  command
      .add_option(
          "--products", products,
          "who computes matrix products on a GPU: compiled, cublaslt, "
          "or auto, cuBLASLt for 16-bit types where it is there and the "
          "artefact has no kernels for exactly this chip")
      ->capture_default_str()
      ->check(productsName())
      ->group("Machine");
  command
      .add_option("--trace", trace,
                  "write when every launch ran, for Perfetto; slows down")
      ->group("Machine");
  command.add_option("--threads", threads, "0: one per processor")
      ->check(wholeNumber(0, 1024))
      ->group("Machine");
  command
      .add_option("--cpu-level", level,
                  "x86-64, x86-64-v3 or x86-64-v4; default: the best")
      ->check(levelName())
      ->group("Machine");
}

Result<Session> Session::open(const SessionOptions &options) {
  // A trace that cannot be written is noticed before hours of work.
  if (!options.trace.empty())
    HYB_TRY(AtomicFile::create(options.trace).status());
  hyb_runtime_options settings;
  hyb_runtime_options_init(&settings, sizeof(settings));
  settings.threads = options.threads;
  settings.device = options.device.c_str();
  settings.products = options.products.c_str();
  settings.cpu_level = options.level.empty() ? nullptr : options.level.c_str();
  Session session;
  HYB_ASSIGN(session.runtime, Runtime::create(settings));
  HYB_ASSIGN(session.model, Model::open(*session.runtime, options.artefact));
  if (!session.model->productNote().empty())
    std::fprintf(stderr, "%s\n", session.model->productNote().c_str());
  if (!options.weights.empty()) {
    HYB_TRY(session.model->loadWeights(options.weights));
    if (options.checkFinite)
      HYB_TRY(session.model->checkFinite().within(options.weights));
  }
  hyb_context_options room;
  hyb_context_options_init(&room, sizeof(room));
  room.check_finite = options.checkFinite;
  HYB_ASSIGN(session.context, Context::create(*session.model, room));
  if (!options.trace.empty()) {
    session.tracePath = options.trace;
    session.trace =
        std::make_unique<Trace>(session.model->device().description());
    session.context->traceTo(session.trace.get());
  }
  return session;
}

Status Session::saveTrace() const {
  return trace ? trace->save(tracePath) : Status();
}

} // namespace hyb::run
