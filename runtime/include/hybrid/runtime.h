/*===- hybrid/runtime.h - Run compiled hybrid models --------------*- C -*-===*
 *
 * Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
 * See LICENSE for license information.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * The runtime loads an artefact (`.hbx`) that `hybridc` compiled from a spec
 * and runs it: prefill, decode, scoring and training steps. It contains no
 * compiler and needs none.
 *
 *   #include <hybrid/runtime.h>
 *   #include <stdio.h>
 *
 *   static int print_token(void *user, int32_t token) {
 *     putchar(token);
 *     return 0;                               // anything else cancels
 *   }
 *
 *   int main(void) {
 *     hyb_error error;
 *     hyb_runtime *runtime = NULL;
 *     hyb_model *model = NULL;
 *     hyb_context *context = NULL;
 *     hyb_state *state = NULL;
 *     hyb_state_options room;
 *     hyb_state_options_init(&room, sizeof(room));
 *     room.context = 4096;
 *     int failed =
 *         hyb_runtime_create(NULL, &runtime, &error) ||
 *         hyb_model_open(runtime, "demo.hbx", &model, &error) ||
 *         // "run": what `hybrid-run train demo.hbx --out=run ...` makes
 *         hyb_model_load_weights(model, "run", &error) ||
 *         hyb_context_create(model, NULL, &context, &error) ||
 *         hyb_state_create(model, &room, &state, &error) ||
 *         hyb_generate_bytes(context, state, 0, "In the beginning", 16, NULL,
 *                            print_token, NULL, &error);
 *     if (failed)
 *       fprintf(stderr, "error: %s\n", error.message);
 *     hyb_state_destroy(state);               // NULL is allowed
 *     hyb_context_destroy(context);
 *     hyb_model_destroy(model);
 *     hyb_runtime_destroy(runtime);
 *     return failed;
 *   }
 *
 * Objects
 *   hyb_runtime  the thread pool, and the choice of device and processor level
 *   hyb_model    one artefact: its code, its plan and its parameters
 *   hyb_context  the memory in which calls of one model run
 *   hyb_state    a pool of slots; a slot is what one sequence has to remember
 *   hyb_snapshot a copy of one slot
 *   hyb_trainer  gradients and optimiser moments of a model
 * An object must outlive those created from it.
 *
 * Tokens. A call takes a packed stream: the tokens of all its segments one
 * after the other, without padding. A segment names the slot it continues.
 * Empty segments are legal. The tokens of a sequence may be given in any
 * pieces: the results are those of one call up to rounding. Rotary positions
 * with dynamic NTK are the exception beyond the trained length: the base is
 * that of the slot's length at the end of the piece, and keys keep theirs.
 *
 * Errors. Every function that can fail returns a status and, where `error` is
 * not NULL, fills in a message. On failure outputs are not written, and a state
 * is as it was before the call unless the function says otherwise. Nothing
 * aborts, nothing throws, and there is no global state.
 *
 * Threads. Different objects may be used from different threads at once. One
 * object must not be used by two threads at the same time, except that a
 * runtime, and a model whose parameters nobody is changing, may be shared: a
 * model changes in hyb_model_load_weights, hyb_model_initialise and
 * hyb_trainer_update alone. Calls on contexts of one runtime take turns on its
 * thread pool. Callbacks run on the calling thread and must not call back into
 * the object that called them.
 *
 * Results are the same bits for the same artefact, device, processor level and
 * calls, whatever the number of threads.
 *
 * Options are structs whose first field is their size: fill them with the
 * `_init` function, then change what you need. NULL means defaults.
 *
 *===----------------------------------------------------------------------===*/

#ifndef HYBRID_RUNTIME_H
#define HYBRID_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HYB_API __attribute__((visibility("default")))
#else
#define HYB_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*===-- Status ------------------------------------------------------------===*/

typedef enum hyb_status {
  HYB_OK = 0,
  HYB_INVALID_ARGUMENT = 1, /* the caller's arguments contradict each other */
  HYB_INVALID_FILE = 2,     /* damaged, or not what it should be */
  HYB_MISMATCH = 3,         /* sound, but for another model */
  HYB_UNSUPPORTED = 4,      /* newer format, or code for another machine */
  HYB_OUT_OF_RANGE = 5,     /* token id, slot, context or rollback too large */
  HYB_OUT_OF_MEMORY = 6,
  HYB_IO = 7,         /* the operating system refused */
  HYB_CANCELLED = 8,  /* by a callback */
  HYB_INTERNAL = 9,   /* a fault of the runtime or of the compiler */
  HYB_DEVICE = 10,    /* the GPU or its driver failed */
  HYB_NOT_FINITE = 11 /* a context that checks found a NaN or an infinity */
} hyb_status;

#define HYB_MESSAGE_SIZE 1024

typedef struct hyb_error {
  hyb_status status;
  char message[HYB_MESSAGE_SIZE]; /* lower case, no newline, never NULL */
} hyb_error;

/* "invalid_file" for HYB_INVALID_FILE; never NULL. */
HYB_API const char *hyb_status_name(hyb_status status);

/* "0.1.0" */
HYB_API const char *hyb_version(void);

/*===-- Runtime -----------------------------------------------------------===*/

typedef struct hyb_runtime hyb_runtime;

typedef enum hyb_log_level {
  HYB_LOG_ERROR = 0,
  HYB_LOG_WARNING = 1,
  HYB_LOG_INFO = 2,
  HYB_LOG_DEBUG = 3
} hyb_log_level;

typedef void (*hyb_log_callback)(void *user, hyb_log_level level,
                                 const char *message);

typedef struct hyb_runtime_options {
  size_t size;
  /* Worker threads, the caller's included. 0: one per processor that the
   * operating system gives this process. */
  int32_t threads;
  /* "x86-64", "x86-64-v3" or "x86-64-v4"; NULL: the best that the processor
   * has and the artefact holds. */
  const char *cpu_level;
  hyb_log_callback log; /* may be NULL */
  void *log_user;
  /* Where models run: "cpu", "cuda:N", or "auto" (and NULL): the first GPU when
   * the artefact has code for it and it is there, else the processor. A GPU
   * that is named is opened at once and must be there. */
  const char *device;
  /* 1: use the CUDA context that is current on the calling thread, and its
   * device; else the primary context of the device, which is also what PyTorch
   * and the CUDA runtime use. A context must outlive the runtime. */
  int32_t use_current_context;
  /* Who computes matrix products that the plan marks as such, on a GPU, in
   * calls of more than a few rows: "compiled" (and NULL), the artefact's
   * kernels; "cublaslt", NVIDIA's library, which must be there (it is opened
   * by name, or by the environment variable HYBRID_CUBLASLT); "auto", the
   * library for products in bf16 and f16 where it is there and the artefact has
   * no kernels for exactly this chip. The library is opened only when it is
   * asked for. Results are then those of its version, too. */
  const char *products;
} hyb_runtime_options;

HYB_API void hyb_runtime_options_init(hyb_runtime_options *options,
                                      size_t size);
HYB_API hyb_status hyb_runtime_create(const hyb_runtime_options *options,
                                      hyb_runtime **runtime, hyb_error *error);
HYB_API void hyb_runtime_destroy(hyb_runtime *runtime);
HYB_API int32_t hyb_runtime_threads(const hyb_runtime *runtime);

/*===-- Model -------------------------------------------------------------===*/

typedef struct hyb_model hyb_model;

/* Reads and checks the whole file and maps its code. A bad file is refused
 * with a reason, whatever its bytes. Running a model is running its code: open
 * artefacts only from people you would take a program from. */
HYB_API hyb_status hyb_model_open(hyb_runtime *runtime, const char *path,
                                  hyb_model **model, hyb_error *error);
/* The same for an artefact in memory; `bytes` is copied. */
HYB_API hyb_status hyb_model_open_memory(hyb_runtime *runtime,
                                         const void *bytes, size_t size,
                                         hyb_model **model, hyb_error *error);
HYB_API void hyb_model_destroy(hyb_model *model);

typedef struct hyb_model_info {
  size_t size;
  const char *name; /* all texts live as long as the model */
  const char *spec; /* the text of the spec */
  const char *toolchain;
  const char *cpu_level; /* of the code in use; on a GPU its name: "sm_90a" */
  int64_t vocabulary;
  int64_t trained_length;
  int64_t parameters; /* number of scalars */
  int64_t parameter_tensors;
  const char *device; /* "cpu", "cuda:0" */
  const char *dtype;  /* the spec's: "f32", "bf16", "f16" */
} hyb_model_info;

HYB_API hyb_status hyb_model_get_info(const hyb_model *model,
                                      hyb_model_info *info, size_t size,
                                      hyb_error *error);

typedef struct hyb_parameter {
  size_t size;
  const char *path; /* "layers.3.mixer.q_proj.weight" */
  int32_t rank;
  const int64_t *shape; /* [out, in] for a weight */
  /* Row-major; may be written while nothing runs. NULL on a GPU: use
   * hyb_model_read_parameter and hyb_model_write_parameter, which on a
   * processor too spare a model in bf16 or f16 a copy of all in f32. */
  float *data;
  int32_t weight_decay; /* 1 when weight decay applies */
} hyb_parameter;

HYB_API hyb_status hyb_model_get_parameter(hyb_model *model, int64_t index,
                                           hyb_parameter *parameter,
                                           size_t size, hyb_error *error);

/* Copies one parameter, wherever the model is, to or from `elements` floats:
 * the product of its shape. */
HYB_API hyb_status hyb_model_read_parameter(const hyb_model *model,
                                            int64_t index, float *target,
                                            int64_t elements, hyb_error *error);
HYB_API hyb_status hyb_model_write_parameter(hyb_model *model, int64_t index,
                                             const float *source,
                                             int64_t elements,
                                             hyb_error *error);

/* A model in bf16 or f16 holds its parameters in that type alone until the
 * first optimiser is made or something below gives out or changes their f32
 * memory; then they are read from the file again, which stays open until that
 * time and must not be written in place. What is read or saved is always the
 * f32 number of the file.
 *
 * Reads all parameters from a `.safetensors` file, or the checkpoint in the
 * folder of a training run: every parameter of the model must be there with its
 * shape as F32, BF16 or F16, and nothing else. The parameters are unchanged on
 * failure. */
HYB_API hyb_status hyb_model_load_weights(hyb_model *model, const char *path,
                                          hyb_error *error);
/* Writes all parameters; the file at `path` is either the old or the new. */
HYB_API hyb_status hyb_model_save_weights(const hyb_model *model,
                                          const char *path, hyb_error *error);
/* Fills the parameters with the spec's distributions. The numbers depend on the
 * seed, the path and the element alone. */
HYB_API hyb_status hyb_model_initialise(hyb_model *model, uint64_t seed,
                                        hyb_error *error);
/* Fails with HYB_MISMATCH and names the first parameter that holds a NaN or an
 * infinity. */
HYB_API hyb_status hyb_model_check_finite(const hyb_model *model,
                                          hyb_error *error);

/*===-- Element types -----------------------------------------------------===*/

/* What a buffer is made of. Parameters, gradients, losses and logits are f32
 * whatever the model computes in. */
typedef enum hyb_element_type {
  HYB_F32 = 0,
  HYB_I32 = 1,
  HYB_BF16 = 2,
  HYB_F16 = 3
} hyb_element_type;

/*===-- Context -----------------------------------------------------------===*/

typedef struct hyb_context hyb_context;

typedef struct hyb_context_options {
  size_t size;
  /* Fill working memory with NaN before every call: finds reads of memory that
   * nobody wrote. On a GPU also waits after every launch, so that an error
   * names the kernel. Slow. */
  int32_t poison;
  /* On a GPU: start kernels one by one. Else a call whose shape comes a second
   * time with the same buffers becomes a CUDA graph, which starts faster. */
  int32_t launch_one_by_one;
  /* On a GPU, 1: work in `stream` (a CUstream; NULL is the default stream), so
   * that it follows what the caller has put there. Else in a stream of the
   * context's own. Calls return when their work is done either way. */
  int32_t use_stream;
  void *stream;
  /* Look at every number that a kernel reads from the caller or writes, and end
   * the call with HYB_NOT_FINITE at the first NaN or infinity; the error names
   * the buffer, or the layer and operation that gave it and what is known of
   * when it does. Minus infinity is let through: it is the logarithm of a sum
   * of nothing. Not together with `poison`. Slow. */
  int32_t check_finite;
} hyb_context_options;

HYB_API void hyb_context_options_init(hyb_context_options *options,
                                      size_t size);
HYB_API hyb_status hyb_context_create(hyb_model *model,
                                      const hyb_context_options *options,
                                      hyb_context **context, hyb_error *error);
HYB_API void hyb_context_destroy(hyb_context *context);
/* Bytes of working memory held now. It grows with the largest call seen. */
HYB_API int64_t hyb_context_memory(const hyb_context *context);
/* From now on records when every launch of this context runs, which makes calls
 * a little slower. Begins anew when it already does. */
HYB_API hyb_status hyb_context_trace(hyb_context *context, hyb_error *error);
/* Writes what was recorded, by layer and op, in the trace event format that
 * Perfetto and chrome://tracing read, and stops. */
HYB_API hyb_status hyb_context_save_trace(hyb_context *context,
                                          const char *path, hyb_error *error);

/* What a watched context tells of one launch of a kernel that has run. */
typedef struct hyb_launch_view {
  const void *data; /* on the host, as the kernel reads it */
  hyb_element_type type;
  int32_t rank;
  const int64_t *sizes;
  const int64_t *strides; /* in elements */
} hyb_launch_view;

typedef struct hyb_launch {
  size_t size;
  const char *entry;  /* "backward" */
  int64_t index;      /* in the entry's list of launches */
  int64_t layer;      /* -1 outside layers */
  const char *op;     /* "mixer.q_proj" */
  const char *kernel; /* its name in the plan, or what a library computed */
  /* What the kernel was given: inputs, then outputs. An input that is written
   * in place is there once. Of a library's product the factors, then the
   * result. */
  const hyb_launch_view *views;
  int64_t view_count;
} hyb_launch;

typedef void (*hyb_launch_callback)(void *user, const hyb_launch *launch);

/* Calls `callback` after every launch of this context, when its outputs are in
 * memory and the next launch has not begun; NULL ends that. What a launch
 * points to is valid during the callback, which must change nothing. Launches
 * without work are left out; one that runs for some rows of the stream at a
 * time is shown each time, its views beginning at those rows. Results are the
 * same bits; calls are slower. */
HYB_API hyb_status hyb_context_watch(hyb_context *context,
                                     hyb_launch_callback callback, void *user,
                                     hyb_error *error);

/*===-- State -------------------------------------------------------------===*/

typedef struct hyb_state hyb_state;
typedef struct hyb_snapshot hyb_snapshot;

typedef struct hyb_state_options {
  size_t size;
  int64_t slots; /* sequences at once; default 1 */
  /* Tokens a slot can hold. Default the trained length, or 4096 when the spec
   * states none. */
  int64_t context;
  /* Tokens of one segment that a kernel sees at once; longer segments are cut.
   * Default 512 on a processor; on a GPU 8192 divided by the slots, in 512 to
   * 4096; in both cases at most the context. */
  int64_t chunk;
  /* How many tokens hyb_state_rollback can take back; default 0. */
  int64_t rollback_depth;
} hyb_state_options;

HYB_API void hyb_state_options_init(hyb_state_options *options, size_t size);
/* Slots are empty after creation. */
HYB_API hyb_status hyb_state_create(hyb_model *model,
                                    const hyb_state_options *options,
                                    hyb_state **state, hyb_error *error);
HYB_API void hyb_state_destroy(hyb_state *state);
/* Bytes that a state takes, before anything is created. */
HYB_API hyb_status hyb_state_measure(const hyb_model *model,
                                     const hyb_state_options *options,
                                     int64_t *bytes, hyb_error *error);
/* Tokens in a slot; -1 for a slot that does not exist. */
HYB_API int64_t hyb_state_length(const hyb_state *state, int64_t slot);
HYB_API hyb_status hyb_state_reset(hyb_state *state, int64_t slot,
                                   hyb_error *error);
/* Makes slot `to` a copy of slot `from`. */
HYB_API hyb_status hyb_state_fork(hyb_state *state, int64_t from, int64_t to,
                                  hyb_error *error);
/* Takes back the last `tokens` tokens. At most `rollback_depth` can be taken
 * back, counted from the largest length that the slot has had; tokens before
 * that need a snapshot. Tokens between the last remembered
 * point and the target are computed again, which is why this runs in a
 * context. The slot is empty after a failure while running. */
HYB_API hyb_status hyb_state_rollback(hyb_context *context, hyb_state *state,
                                      int64_t slot, int64_t tokens,
                                      hyb_error *error);

/* A snapshot may be taken at any token and restored into any slot of a state
 * with the same context, chunk and rollback depth, on the same device: it is a
 * copy there. */
HYB_API hyb_status hyb_state_snapshot(const hyb_state *state, int64_t slot,
                                      hyb_snapshot **snapshot,
                                      hyb_error *error);
HYB_API hyb_status hyb_state_restore(hyb_state *state, int64_t slot,
                                     const hyb_snapshot *snapshot,
                                     hyb_error *error);
HYB_API void hyb_snapshot_destroy(hyb_snapshot *snapshot);

/* A slot on disk, as `.safetensors`; the file is written atomically. It is for
 * states with the same context, chunk and rollback depth, which it records; the
 * default chunk depends on the device and the number of slots. */
HYB_API hyb_status hyb_state_save(const hyb_state *state, int64_t slot,
                                  const char *path, hyb_error *error);
HYB_API hyb_status hyb_state_load(hyb_state *state, int64_t slot,
                                  const char *path, hyb_error *error);

/*===-- Calls -------------------------------------------------------------===*/

typedef struct hyb_segment {
  int64_t length; /* tokens of the stream that belong to this segment */
  int64_t slot;   /* of the state; ignored by calls without a state */
} hyb_segment;

typedef struct hyb_batch {
  const int32_t *ids; /* [tokens], each below the vocabulary */
  int64_t tokens;
  const hyb_segment *segments; /* lengths sum to `tokens`; slots differ */
  int64_t segment_count;
  /* For hyb_loss and hyb_trainer_accumulate: the class each row should
   * predict, or -100 to leave the row out. */
  const int32_t *labels;
  const float *weights; /* [tokens]; NULL: all 1 */
} hyb_batch;

typedef enum hyb_logits {
  HYB_LOGITS_LAST = 0, /* [segments, vocabulary]: of each segment's last row */
  HYB_LOGITS_ALL = 1   /* [tokens, vocabulary] */
} hyb_logits;

/* Appends the batch's tokens to their slots. `*logits` belongs to the context
 * and is valid until its next call; the row of an empty segment is 0. A call
 * that fails half-way through segments longer than the chunk has appended the
 * chunks that hyb_state_length then counts. */
HYB_API hyb_status hyb_extend(hyb_context *context, hyb_state *state,
                              const hyb_batch *batch, hyb_logits which,
                              const float **logits, hyb_error *error);

/* Cross entropy per token in nats, times its weight, of whole sequences.
 * `*loss` is [tokens], 0 where the label is -100, and belongs to the context
 * until its next call. */
HYB_API hyb_status hyb_loss(hyb_context *context, const hyb_batch *batch,
                            const float **loss, hyb_error *error);

/*===-- Sampling ----------------------------------------------------------===*/

typedef struct hyb_sampling {
  size_t size;
  float temperature; /* 0: greedy (the default); ties go to the smallest id */
  int32_t top_k;     /* keep the k likeliest; 0: all */
  float top_p;       /* keep the smallest set of at least this mass; 1: all */
  uint64_t seed;
  int64_t max_tokens; /* default 256 */
  int32_t stop_token; /* -1: none */
} hyb_sampling;

HYB_API void hyb_sampling_init(hyb_sampling *sampling, size_t size);

/* Called with every new token; a result other than 0 cancels, and the call
 * returns HYB_CANCELLED with the state as it then is. */
typedef int (*hyb_token_callback)(void *user, int32_t token);

/* Draws one token. `step` numbers the draws of one seed: the same seed, step
 * and logits give the same token. Logits of which one is NaN, or all are
 * negative infinity, are refused with HYB_MISMATCH. */
HYB_API hyb_status hyb_sample(const float *logits, int64_t vocabulary,
                              const hyb_sampling *sampling, uint64_t step,
                              int32_t *token, hyb_error *error);

/* Extends the slot by the prompt, then by tokens drawn one at a time, until
 * `max_tokens`, the stop token, or the end of the context. The last token
 * drawn is passed to the callback but not appended. */
HYB_API hyb_status hyb_generate(hyb_context *context, hyb_state *state,
                                int64_t slot, const int32_t *prompt,
                                int64_t prompt_tokens,
                                const hyb_sampling *sampling,
                                hyb_token_callback callback, void *user,
                                hyb_error *error);
/* The same for a model of bytes. */
HYB_API hyb_status hyb_generate_bytes(hyb_context *context, hyb_state *state,
                                      int64_t slot, const char *prompt,
                                      size_t prompt_bytes,
                                      const hyb_sampling *sampling,
                                      hyb_token_callback callback, void *user,
                                      hyb_error *error);

/*===-- Training ----------------------------------------------------------===*/

typedef struct hyb_trainer hyb_trainer;

typedef struct hyb_trainer_options {
  size_t size;
  float beta1;        /* 0.9 */
  float beta2;        /* 0.95 */
  float epsilon;      /* 1e-8 */
  float weight_decay; /* 0.1; decoupled; spares gates, norms and biases */
  float clip_norm;    /* 1; 0: no clipping */
  /* 0; of what training leaves out at random (`dropout` of the spec), which
   * follows from the seed, the step and the micro-batch in it. Trainers that
   * share the work of a step need unlike ones. */
  uint64_t seed;
} hyb_trainer_options;

HYB_API void hyb_trainer_options_init(hyb_trainer_options *options,
                                      size_t size);
HYB_API hyb_status hyb_trainer_create(hyb_context *context,
                                      const hyb_trainer_options *options,
                                      hyb_trainer **trainer, hyb_error *error);
HYB_API void hyb_trainer_destroy(hyb_trainer *trainer);

/* Adds the gradients of one micro-batch of whole sequences. `*loss` is the sum
 * of weighted losses in nats and `*weight` the sum of the weights of the rows
 * that have a label; both may be NULL. */
HYB_API hyb_status hyb_trainer_accumulate(hyb_trainer *trainer,
                                          const hyb_batch *batch, double *loss,
                                          double *weight, hyb_error *error);

typedef struct hyb_update {
  double gradient_norm; /* of the mean loss, before clipping */
  double weight;        /* summed over the accumulated batches */
  int32_t skipped;      /* 1: not finite, or no row had a label */
  int64_t step;         /* steps taken so far, skipped ones left out */
} hyb_update;

/* One AdamW step on the mean loss of what was accumulated, then clears the
 * gradients. A step without labels or with a gradient that is not finite is
 * skipped and reported: the parameters and moments stay as they are. */
HYB_API hyb_status hyb_trainer_update(hyb_trainer *trainer, float learning_rate,
                                      hyb_update *update, hyb_error *error);

/* Parameters, moments and the step count, as one `.safetensors` file written
 * atomically. Between accumulate and update, whose gradients it would lose, it
 * is refused with HYB_INVALID_ARGUMENT. */
HYB_API hyb_status hyb_trainer_save(const hyb_trainer *trainer,
                                    const char *path, hyb_error *error);
HYB_API hyb_status hyb_trainer_load(hyb_trainer *trainer, const char *path,
                                    hyb_error *error);

#ifdef __cplusplus
}
#endif

#endif /* HYBRID_RUNTIME_H */
