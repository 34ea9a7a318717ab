/*===- hybrid/dlpack.h - Tensors shared with other libraries ------*- C -*-===*
 *
 * Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
 * See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * Memory of the runtime as tensors of other libraries and the other way round,
 * without a copy where possible. The structs have the layout of DLPack's
 * DLTensor and DLManagedTensor, so a pointer may be cast: in Python, a
 * hyb_dl_managed in a capsule named "dltensor" is what torch.from_dlpack takes.
 *
 * A tensor that is given out shares the memory: writing to it changes the model
 * or the state. It holds a share of the memory, so that it stays valid after
 * the object it came from; call its deleter, once, when it is no longer needed.
 *
 *===----------------------------------------------------------------------===*/

#ifndef HYBRID_DLPACK_H
#define HYBRID_DLPACK_H

#include "hybrid/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { HYB_DL_CPU = 1, HYB_DL_CUDA = 2, HYB_DL_CUDA_HOST = 3 };
enum { HYB_DL_INT = 0, HYB_DL_UINT = 1, HYB_DL_FLOAT = 2, HYB_DL_BFLOAT = 4 };

typedef struct hyb_dl_device {
  int32_t type;  /* HYB_DL_CPU ... */
  int32_t index; /* which one of its type */
} hyb_dl_device;

typedef struct hyb_dl_type {
  uint8_t code; /* HYB_DL_INT ... */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} hyb_dl_type;

typedef struct hyb_dl_tensor {
  void *data; /* an address of the device */
  hyb_dl_device device;
  int32_t rank;
  hyb_dl_type type;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: contiguous */
  uint64_t byte_offset;
} hyb_dl_tensor;

typedef struct hyb_dl_managed {
  hyb_dl_tensor tensor;
  void *manager;
  void (*deleter)(struct hyb_dl_managed *self);
} hyb_dl_managed;

/* A parameter, in its own shape. */
HYB_API hyb_status hyb_model_share_parameter(hyb_model *model, int64_t index,
                                             hyb_dl_managed **tensor,
                                             hyb_error *error);
/* What was accumulated for a parameter since the last update. */
HYB_API hyb_status hyb_trainer_share_gradient(hyb_trainer *trainer,
                                              int64_t index,
                                              hyb_dl_managed **tensor,
                                              hyb_error *error);
/* One of the buffers of a state, [slots, ...]; HYB_OUT_OF_RANGE past the last.
 */
HYB_API hyb_status hyb_state_share(hyb_state *state, int64_t index,
                                   hyb_dl_managed **tensor, hyb_error *error);

/* hyb_extend with ids that another library made and logits that stay on the
 * device. `ids` is [tokens], i32 or i64, contiguous, in the host's memory or in
 * that of the model's device. What writes it must have finished, or be in the
 * stream that the context was created with. `*logits` is a new tensor
 * [segments, vocabulary] or [tokens, vocabulary]. */
HYB_API hyb_status hyb_extend_shared(hyb_context *context, hyb_state *state,
                                     const hyb_dl_tensor *ids,
                                     const hyb_segment *segments,
                                     int64_t segment_count, hyb_logits which,
                                     hyb_dl_managed **logits, hyb_error *error);

#ifdef __cplusplus
}
#endif

#endif /* HYBRID_DLPACK_H */
