//===- StateApi.cpp - C API: states -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "api/Border.h"
#include "core/SharedTensor.h"

using namespace hyb::rt;

static hyb_state_options stateDefaults() {
  return {sizeof(hyb_state_options), 1, 0, 0, 0};
}

void hyb_state_options_init(hyb_state_options *options, size_t size) {
  giveOut(stateDefaults(), options, size);
}

hyb_status hyb_state_create(hyb_model *model, const hyb_state_options *options,
                            hyb_state **state, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    HYB_NEED(state);
    HYB_ASSIGN(hyb_state_options chosen,
               takeIn(options, stateDefaults(), "hyb_state_options"));
    HYB_ASSIGN(auto impl, State::create(*model->impl, chosen));
    *state = new hyb_state{std::move(impl)};
    return Status();
  });
}

void hyb_state_destroy(hyb_state *state) { delete state; }

hyb_status hyb_state_measure(const hyb_model *model,
                             const hyb_state_options *options, int64_t *bytes,
                             hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    HYB_NEED(bytes);
    HYB_ASSIGN(hyb_state_options chosen,
               takeIn(options, stateDefaults(), "hyb_state_options"));
    HYB_ASSIGN(*bytes, State::measure(*model->impl, chosen));
    return Status();
  });
}

int64_t hyb_state_length(const hyb_state *state, int64_t slot) {
  return state && slot >= 0 && slot < state->impl->slotCount()
             ? state->impl->length(slot)
             : -1;
}

hyb_status hyb_state_reset(hyb_state *state, int64_t slot, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    return state->impl->reset(slot);
  });
}

hyb_status hyb_state_fork(hyb_state *state, int64_t from, int64_t to,
                          hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    return state->impl->fork(from, to);
  });
}

hyb_status hyb_state_rollback(hyb_context *context, hyb_state *state,
                              int64_t slot, int64_t tokens, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(context);
    HYB_NEED(state);
    return state->impl->rollback(*context->impl, slot, tokens);
  });
}

hyb_status hyb_state_snapshot(const hyb_state *state, int64_t slot,
                              hyb_snapshot **snapshot, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    HYB_NEED(snapshot);
    HYB_ASSIGN(Snapshot copy, state->impl->snapshot(slot));
    *snapshot = new hyb_snapshot{std::move(copy)};
    return Status();
  });
}

hyb_status hyb_state_restore(hyb_state *state, int64_t slot,
                             const hyb_snapshot *snapshot, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    HYB_NEED(snapshot);
    return state->impl->restore(slot, snapshot->impl);
  });
}

void hyb_snapshot_destroy(hyb_snapshot *snapshot) { delete snapshot; }

hyb_status hyb_state_save(const hyb_state *state, int64_t slot,
                          const char *path, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    HYB_NEED(path);
    return state->impl->save(slot, path);
  });
}

hyb_status hyb_state_load(hyb_state *state, int64_t slot, const char *path,
                          hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    HYB_NEED(path);
    return state->impl->load(slot, path);
  });
}

hyb_status hyb_state_share(hyb_state *state, int64_t index,
                           hyb_dl_managed **tensor, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(state);
    HYB_NEED(tensor);
    const State &impl = *state->impl;
    if (index < 0 || static_cast<size_t>(index) >= impl.buffers().size())
      return failure(HYB_OUT_OF_RANGE,
                     "buffer %lld does not exist, the state has %zu",
                     static_cast<long long>(index), impl.buffers().size());
    size_t place = static_cast<size_t>(index);
    *tensor =
        shareTensor(impl.device(), impl.allMemory(), impl.bufferOffset(place),
                    impl.bufferShape(place), impl.bufferType(place));
    return Status();
  });
}
