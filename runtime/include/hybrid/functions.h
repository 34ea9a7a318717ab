/*===- hybrid/functions.h - Call compiled functions ---------------*- C -*-===*
 *
 * Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
 * See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * Besides whole models, `hybridc` compiles plain functions of tensors: one
 * attention or recurrence for a program that has its own layers. Such an entry
 * of an artefact has named inputs and outputs, which belong to the caller and
 * are used where they are:
 *
 *   int64_t shape[] = {10, 4, 64};            // tokens, heads, dim
 *   hyb_dl_tensor q = {data, {HYB_DL_CPU, 0}, 3, {HYB_DL_FLOAT, 32, 1}, shape,
 *                      NULL, 0};
 *   hyb_argument arguments[] = {{"q", &q}, {"k", &k}, {"v", &v}, {"o", &o}};
 *   int64_t lengths[] = {7, 3};               // of the sequences
 *   hyb_call(context, "attention", arguments, 4, lengths, 2, &error);
 *
 * All sequences of a call stand one after the other, without padding, in the
 * leading dimension of its tensors; each starts at position 0. A tensor with
 * one element per sequence has the sequences in its leading dimension.
 *
 *===----------------------------------------------------------------------===*/

#ifndef HYBRID_FUNCTIONS_H
#define HYBRID_FUNCTIONS_H

#include "hybrid/dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HYB_MAX_RANK 8

typedef struct hyb_argument_info {
  size_t size;
  const char *name;  /* lives as long as the model */
  int32_t is_output; /* 1: hyb_call writes all of it; else it is read only */
  hyb_dl_type type;
  int32_t rank;
  int64_t shape[HYB_MAX_RANK]; /* in a call with these lengths */
} hyb_argument_info;

/* Tells of one argument of a function: its inputs come first, then its outputs;
 * HYB_OUT_OF_RANGE past the last. HYB_UNSUPPORTED when the artefact has no such
 * entry, or when the entry takes more than named tensors. */
HYB_API hyb_status hyb_describe_argument(const hyb_model *model,
                                         const char *entry, int64_t index,
                                         const int64_t *lengths,
                                         int64_t segment_count,
                                         hyb_argument_info *info, size_t size,
                                         hyb_error *error);

typedef struct hyb_argument {
  const char *name;
  const hyb_dl_tensor *tensor;
} hyb_argument;

/* Runs a function on sequences of these lengths. Every argument is given once,
 * in any order: contiguous, in the memory of the model's device, and starting
 * at a multiple of 64 bytes on the host and of 256 on a GPU. An output must not
 * overlap any other argument. Nothing is written when an argument is refused.
 * What tensors hold is not looked at: ids must be rows of their table.
 *
 * In a context with a stream of the caller, the call returns when its work is
 * in the stream: the tensors may be used there at once, and must not be freed
 * before. Else it returns when the outputs are written. */
HYB_API hyb_status hyb_call(hyb_context *context, const char *entry,
                            const hyb_argument *arguments,
                            int64_t argument_count, const int64_t *lengths,
                            int64_t segment_count, hyb_error *error);

/* "x86-64-v3": the best level of instructions that this processor has, as
 * `hybridc --cpu-levels` names it; NULL on one that no code is made for. */
HYB_API const char *hyb_processor_level(void);

#ifdef __cplusplus
}
#endif

#endif /* HYBRID_FUNCTIONS_H */
