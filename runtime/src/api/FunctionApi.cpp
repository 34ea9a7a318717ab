//===- FunctionApi.cpp - The C border of compiled functions --------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "api/Border.h"
#include "cpu/CpuLevel.h"

using namespace hyb::rt;

namespace {

Status checkLengths(const int64_t *lengths, int64_t segments) {
  if (segments < 0)
    return failure(HYB_INVALID_ARGUMENT, "segment_count is %lld",
                   static_cast<long long>(segments));
  if (segments > 0)
    HYB_NEED(lengths);
  return Status();
}

} // namespace

hyb_status hyb_describe_argument(const hyb_model *model, const char *entry,
                                 int64_t index, const int64_t *lengths,
                                 int64_t segment_count, hyb_argument_info *info,
                                 size_t size, hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(model);
    HYB_NEED(entry);
    HYB_NEED(info);
    HYB_TRY(checkLengths(lengths, segment_count));
    HYB_ASSIGN(const PlanEntry *found, model->impl->entry(entry));
    HYB_TRY(checkFunction(*found));
    if (index < 0 || static_cast<size_t>(index) >= found->arguments.size())
      return failure(
          HYB_OUT_OF_RANGE, "argument %lld does not exist, '%s' has %zu",
          static_cast<long long>(index), entry, found->arguments.size());
    const PlanBuffer &buffer =
        found->buffers[found->arguments[static_cast<size_t>(index)]];
    HYB_ASSIGN(Symbols symbols, describeCall(lengths, segment_count));
    HYB_ASSIGN(std::vector<int64_t> shape, shapeOf(buffer, symbols));
    hyb_argument_info told = {};
    told.name = buffer.path.c_str();
    told.is_output = buffer.kind == BufferKind::Output;
    told.type = elementTypeOf(buffer);
    told.rank = static_cast<int32_t>(shape.size());
    std::copy(shape.begin(), shape.end(), told.shape);
    giveOut(told, info, size);
    return Status();
  });
}

hyb_status hyb_call(hyb_context *context, const char *entry,
                    const hyb_argument *arguments, int64_t argument_count,
                    const int64_t *lengths, int64_t segment_count,
                    hyb_error *error) {
  return guarded(error, [&]() -> Status {
    HYB_NEED(context);
    HYB_NEED(entry);
    if (argument_count > 0)
      HYB_NEED(arguments);
    HYB_TRY(checkLengths(lengths, segment_count));
    return context->impl->call(entry, arguments, argument_count, lengths,
                               segment_count);
  });
}

const char *hyb_processor_level(void) {
  std::optional<CpuLevel> level = hostCpuLevel();
  return level ? cpuLevelName(*level) : nullptr;
}
