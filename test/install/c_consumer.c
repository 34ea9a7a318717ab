/* Uses the installed C API: a missing artefact is an error with its name in it.
 */
#include <hybrid/runtime.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  hyb_error error;
  hyb_runtime *runtime = NULL;
  hyb_model *model = NULL;
  if (hyb_runtime_create(NULL, &runtime, &error)) {
    fprintf(stderr, "error: %s\n", error.message);
    return 1;
  }
  hyb_status status = hyb_model_open(runtime, "absent.hbx", &model, &error);
  hyb_runtime_destroy(runtime);
  printf("%s: %s\n", hyb_status_name(status), error.message);
  return status == HYB_IO && strstr(error.message, "absent.hbx") ? 0 : 1;
}
