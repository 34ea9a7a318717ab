//===- hybrid/runtime.hpp - The runtime in C++ ------------------*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A header-only wrapper of hybrid/runtime.h: objects own their handles,
// failures are exceptions, and tokens are vectors. What the functions do, and
// which threads may call them, is written there.
//
//   hyb::Runtime runtime;
//   hyb::Model model(runtime, "demo.hbx");
//   model.loadWeights("run");  // what hybrid-run train --out=run makes
//   hyb::Context context(model);
//   hyb::State state(model, {/*slots=*/1, /*context=*/4096});
//   context.generate(state, 0, "In the beginning", {}, [](int32_t token) {
//     std::cout << static_cast<char>(token) << std::flush;
//     return true;                                  // false stops
//   });
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_RUNTIME_HPP
#define HYBRID_RUNTIME_HPP

#include "hybrid/runtime.h"

#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hyb {

/// What the C API returned, with its message.
class Error : public std::runtime_error {
public:
  explicit Error(const hyb_error &error)
      : std::runtime_error(error.message), code(error.status) {}
  hyb_status status() const { return code; }

private:
  hyb_status code;
};

namespace detail {

template <typename Call> void check(const Call &call) {
  hyb_error error;
  if (call(&error) != HYB_OK)
    throw Error(error);
}

/// Calls the C destroy function.
template <auto Destroy> struct Destroyer {
  template <typename Handle> void operator()(Handle *handle) const {
    Destroy(handle);
  }
};
template <typename Handle, auto Destroy>
using Owner = std::unique_ptr<Handle, Destroyer<Destroy>>;

} // namespace detail

class Runtime {
public:
  /// `threads` 0: one per processor; `level` empty: the processor's best;
  /// `device` and `products` as in hyb_runtime_options.
  explicit Runtime(int32_t threads = 0, const std::string &level = "",
                   const std::string &device = "auto",
                   const std::string &products = "compiled") {
    hyb_runtime_options options;
    hyb_runtime_options_init(&options, sizeof(options));
    options.threads = threads;
    options.cpu_level = level.empty() ? nullptr : level.c_str();
    options.device = device.c_str();
    options.products = products.c_str();
    hyb_runtime *handle = nullptr;
    detail::check(
        [&](auto *e) { return hyb_runtime_create(&options, &handle, e); });
    owner.reset(handle);
  }
  hyb_runtime *get() const { return owner.get(); }
  int32_t threads() const { return hyb_runtime_threads(get()); }

private:
  detail::Owner<hyb_runtime, hyb_runtime_destroy> owner;
};

class Model {
public:
  Model(const Runtime &runtime, const std::string &path) {
    hyb_model *handle = nullptr;
    detail::check([&](auto *e) {
      return hyb_model_open(runtime.get(), path.c_str(), &handle, e);
    });
    owner.reset(handle);
  }
  hyb_model *get() const { return owner.get(); }

  void loadWeights(const std::string &path) {
    detail::check([&](auto *e) {
      return hyb_model_load_weights(get(), path.c_str(), e);
    });
  }
  void saveWeights(const std::string &path) const {
    detail::check([&](auto *e) {
      return hyb_model_save_weights(get(), path.c_str(), e);
    });
  }
  void initialise(uint64_t seed) {
    detail::check(
        [&](auto *e) { return hyb_model_initialise(get(), seed, e); });
  }
  hyb_model_info info() const {
    hyb_model_info result;
    detail::check([&](auto *e) {
      return hyb_model_get_info(get(), &result, sizeof(result), e);
    });
    return result;
  }
  hyb_parameter parameter(int64_t index) {
    hyb_parameter result;
    detail::check([&](auto *e) {
      return hyb_model_get_parameter(get(), index, &result, sizeof(result), e);
    });
    return result;
  }

private:
  detail::Owner<hyb_model, hyb_model_destroy> owner;
};

using Snapshot = detail::Owner<hyb_snapshot, hyb_snapshot_destroy>;

/// Fields that are 0 have the defaults of hyb_state_options.
struct StateOptions {
  int64_t slots = 1;
  int64_t context = 0;
  int64_t chunk = 0;
  int64_t rollbackDepth = 0;
};

class State {
public:
  explicit State(const Model &model, const StateOptions &wanted = {}) {
    hyb_state_options options;
    hyb_state_options_init(&options, sizeof(options));
    options.slots = wanted.slots;
    options.context = wanted.context;
    options.chunk = wanted.chunk;
    options.rollback_depth = wanted.rollbackDepth;
    hyb_state *handle = nullptr;
    detail::check([&](auto *e) {
      return hyb_state_create(model.get(), &options, &handle, e);
    });
    owner.reset(handle);
  }
  hyb_state *get() const { return owner.get(); }

  int64_t length(int64_t slot) const { return hyb_state_length(get(), slot); }
  void reset(int64_t slot) {
    detail::check([&](auto *e) { return hyb_state_reset(get(), slot, e); });
  }
  void fork(int64_t from, int64_t to) {
    detail::check([&](auto *e) { return hyb_state_fork(get(), from, to, e); });
  }
  Snapshot snapshot(int64_t slot) const {
    hyb_snapshot *handle = nullptr;
    detail::check(
        [&](auto *e) { return hyb_state_snapshot(get(), slot, &handle, e); });
    return Snapshot(handle);
  }
  void restore(int64_t slot, const Snapshot &snapshot) {
    detail::check([&](auto *e) {
      return hyb_state_restore(get(), slot, snapshot.get(), e);
    });
  }
  void save(int64_t slot, const std::string &path) const {
    detail::check(
        [&](auto *e) { return hyb_state_save(get(), slot, path.c_str(), e); });
  }
  void load(int64_t slot, const std::string &path) {
    detail::check(
        [&](auto *e) { return hyb_state_load(get(), slot, path.c_str(), e); });
  }

private:
  detail::Owner<hyb_state, hyb_state_destroy> owner;
};

struct Sampling {
  float temperature = 0;
  int32_t topK = 0;
  float topP = 1;
  uint64_t seed = 0;
  int64_t maxTokens = 256;
  int32_t stopToken = -1;
};

/// Tokens of one call: segments one after the other.
struct Batch {
  std::vector<int32_t> ids;
  std::vector<hyb_segment> segments;
  std::vector<int32_t> labels; // empty for calls without a loss
  std::vector<float> weights;  // empty: all 1

  void add(const std::vector<int32_t> &tokens, int64_t slot = 0) {
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    segments.push_back({static_cast<int64_t>(tokens.size()), slot});
  }
  /// Valid while this is; the labels and weights must be as many as the ids.
  hyb_batch view() const {
    hyb_batch batch = {};
    batch.ids = ids.data();
    batch.tokens = static_cast<int64_t>(ids.size());
    batch.segments = segments.data();
    batch.segment_count = static_cast<int64_t>(segments.size());
    batch.labels = labels.size() == ids.size() ? labels.data() : nullptr;
    batch.weights = weights.size() == ids.size() && !weights.empty()
                        ? weights.data()
                        : nullptr;
    return batch;
  }
};

class Context {
public:
  explicit Context(const Model &model) {
    hyb_context *handle = nullptr;
    detail::check([&](auto *e) {
      return hyb_context_create(model.get(), nullptr, &handle, e);
    });
    owner.reset(handle);
  }
  hyb_context *get() const { return owner.get(); }

  /// Rows of logits, valid until the next call on this context.
  const float *extend(State &state, const Batch &batch,
                      hyb_logits which = HYB_LOGITS_LAST) {
    const float *logits = nullptr;
    hyb_batch view = batch.view();
    detail::check([&](auto *e) {
      return hyb_extend(get(), state.get(), &view, which, &logits, e);
    });
    return logits;
  }
  /// A loss per token, valid until the next call on this context.
  const float *loss(const Batch &batch) {
    const float *losses = nullptr;
    hyb_batch view = batch.view();
    detail::check([&](auto *e) { return hyb_loss(get(), &view, &losses, e); });
    return losses;
  }
  void rollback(State &state, int64_t slot, int64_t tokens) {
    detail::check([&](auto *e) {
      return hyb_state_rollback(get(), state.get(), slot, tokens, e);
    });
  }

  /// Continues `prompt` byte by byte; `callback` gets every token and returns
  /// false to stop. True when it was not stopped. What the callback throws
  /// comes out here.
  bool generate(State &state, int64_t slot, std::string_view prompt,
                const Sampling &wanted,
                const std::function<bool(int32_t)> &callback) {
    hyb_sampling sampling;
    hyb_sampling_init(&sampling, sizeof(sampling));
    sampling.temperature = wanted.temperature;
    sampling.top_k = wanted.topK;
    sampling.top_p = wanted.topP;
    sampling.seed = wanted.seed;
    sampling.max_tokens = wanted.maxTokens;
    sampling.stop_token = wanted.stopToken;
    struct Call {
      const std::function<bool(int32_t)> &callback;
      std::exception_ptr thrown;
    } call{callback, nullptr};
    auto forward = [](void *user, int32_t token) -> int {
      Call &call = *static_cast<Call *>(user);
      try {
        return call.callback(token) ? 0 : 1;
      } catch (...) { // must not pass through C
        call.thrown = std::current_exception();
        return 1;
      }
    };
    hyb_error error;
    hyb_status status =
        hyb_generate_bytes(get(), state.get(), slot, prompt.data(),
                           prompt.size(), &sampling, forward, &call, &error);
    if (call.thrown)
      std::rethrow_exception(call.thrown);
    if (status != HYB_OK && status != HYB_CANCELLED)
      throw Error(error);
    return status == HYB_OK;
  }

private:
  detail::Owner<hyb_context, hyb_context_destroy> owner;
};

class Trainer {
public:
  explicit Trainer(const Context &context,
                   const hyb_trainer_options *options = nullptr) {
    hyb_trainer *handle = nullptr;
    detail::check([&](auto *e) {
      return hyb_trainer_create(context.get(), options, &handle, e);
    });
    owner.reset(handle);
  }
  hyb_trainer *get() const { return owner.get(); }

  /// The summed loss and the summed weight of the rows with a label.
  std::pair<double, double> accumulate(const Batch &batch) {
    std::pair<double, double> sums;
    hyb_batch view = batch.view();
    detail::check([&](auto *e) {
      return hyb_trainer_accumulate(get(), &view, &sums.first, &sums.second, e);
    });
    return sums;
  }
  hyb_update update(float learningRate) {
    hyb_update result = {};
    detail::check([&](auto *e) {
      return hyb_trainer_update(get(), learningRate, &result, e);
    });
    return result;
  }
  void save(const std::string &path) const {
    detail::check(
        [&](auto *e) { return hyb_trainer_save(get(), path.c_str(), e); });
  }
  void load(const std::string &path) {
    detail::check(
        [&](auto *e) { return hyb_trainer_load(get(), path.c_str(), e); });
  }

private:
  detail::Owner<hyb_trainer, hyb_trainer_destroy> owner;
};

} // namespace hyb

#endif // HYBRID_RUNTIME_HPP
