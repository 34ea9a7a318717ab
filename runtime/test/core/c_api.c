//===- c_api.c -----------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
/* The program of the header's essay, against the fixture model: that it
 * compiles as strict C is half of the test. */

#include <hybrid/runtime.h>

#include <stdio.h>
#include <string.h>

static int countToken(void *user, int32_t token) {
  (void)token;
  ++*(int *)user;
  return 0;
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
                        &tokens, &error);
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
