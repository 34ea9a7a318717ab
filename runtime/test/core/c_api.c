//===- c_api.c -----------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
/* The programs of the headers' essays, against the fixture model: that they
 * compile as strict C is half of the test. */

#include <hybrid/functions.h>
#include <hybrid/runtime.h>

#include <stdio.h>
#include <string.h>

static int countToken(void *user, int32_t token) {
  (void)token;
  ++*(int *)user;
  return 0;
}

/* Floats and integers that start at a multiple of 64 bytes. */
static char memory[64 + 256 + 64 + 64];

/* Picks rows 2 and 7 of a table; 0 when they are there. */
static int callFunction(hyb_context *context, hyb_model *model,
                        hyb_error *error) {
  char *begin = memory + (64 - (uintptr_t)memory % 64) % 64;
  float *rows = (float *)(void *)begin;
  int32_t *which = (int32_t *)(void *)(begin + 256);
  float *picked = (float *)(void *)(begin + 320);
  int64_t table[] = {8, 8}, tokens[] = {2}, result[] = {2, 8}, lengths[] = {2};
  hyb_dl_tensor inputs[] = {
      {NULL, {HYB_DL_CPU, 0}, 2, {HYB_DL_FLOAT, 32, 1}, NULL, NULL, 0},
      {NULL, {HYB_DL_CPU, 0}, 1, {HYB_DL_INT, 32, 1}, NULL, NULL, 0},
      {NULL, {HYB_DL_CPU, 0}, 2, {HYB_DL_FLOAT, 32, 1}, NULL, NULL, 0}};
  hyb_argument arguments[] = {
      {"rows", NULL}, {"which", NULL}, {"picked", NULL}};
  hyb_argument_info info;
  int i;
  inputs[0].data = rows, inputs[0].shape = table;
  inputs[1].data = which, inputs[1].shape = tokens;
  inputs[2].data = picked, inputs[2].shape = result;
  for (i = 0; i < 3; ++i)
    arguments[i].tensor = &inputs[i];
  for (i = 0; i < 64; ++i)
    rows[i] = (float)i;
  which[0] = 2, which[1] = 7;
  if (hyb_call(context, "pick", arguments, 3, lengths, 1, error) ||
      hyb_describe_argument(model, "pick", 2, lengths, 1, &info, sizeof(info),
                            error))
    return 1;
  error->status = HYB_INTERNAL;
  strcpy(error->message, "hyb_call picked other rows");
  return !(picked[0] == 16 && picked[15] == 63 && info.is_output &&
           info.rank == 2 && info.shape[0] == 2 && info.shape[1] == 8 &&
           strcmp(info.name, "picked") == 0);
}

/* 0 when a number that names no logits is refused: an enum of C holds any. */
static int refusesOtherLogits(hyb_context *context, hyb_state *state,
                              hyb_error *error) {
  const int32_t id = 1;
  const hyb_segment segment = {1, 0};
  const float *logits = NULL;
  hyb_batch batch;
  memset(&batch, 0, sizeof(batch));
  batch.ids = &id;
  batch.tokens = 1;
  batch.segments = &segment;
  batch.segment_count = 1;
  if (hyb_extend(context, state, &batch, (hyb_logits)7, &logits, error) ==
          HYB_INVALID_ARGUMENT &&
      strstr(error->message, "is 7"))
    return 0;
  strcpy(error->message, "hyb_extend took 7 for a kind of logits");
  return 1;
}

int main(int argc, char **argv) {
  hyb_error error;
  hyb_runtime *runtime = NULL;
  hyb_model *model = NULL;
  hyb_context *context = NULL;
  hyb_state *state = NULL;
  hyb_state_options room;
  hyb_sampling sampling;
  int tokens = 0;
  int failed;
  const int32_t prompt[3] = {1, 2, 3};
  if (argc != 2) {
    fprintf(stderr, "usage: %s ARTEFACT\n", argv[0]);
    return 2;
  }
  hyb_state_options_init(&room, sizeof(room));
  room.context = 40;
  hyb_sampling_init(&sampling, sizeof(sampling));
  sampling.max_tokens = 10;
  failed = hyb_runtime_create(NULL, &runtime, &error) ||
           hyb_model_open(runtime, argv[1], &model, &error) ||
           hyb_model_initialise(model, 1, &error) ||
           hyb_context_create(model, NULL, &context, &error) ||
           hyb_state_create(model, &room, &state, &error) ||
           hyb_generate(context, state, 0, prompt, 3, &sampling, countToken,
                        &tokens, &error) ||
           callFunction(context, model, &error) ||
           refusesOtherLogits(context, state, &error);
  if (failed)
    fprintf(stderr, "error: %s\n", error.message);
  hyb_state_destroy(state);
  hyb_context_destroy(context);
  hyb_model_destroy(model);
  hyb_runtime_destroy(runtime);
  if (!failed && tokens != 10) {
    fprintf(stderr, "%d tokens, expected 10\n", tokens);
    return 1;
  }
  return failed ? 1 : 0;
}
