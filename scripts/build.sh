#!/usr/bin/env bash
# Configures and builds one preset.
#
#   scripts/build.sh [dev|release|asan] [ninja targets...]
#
# HYBRID_JOBS limits the number of compilers that run at once.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-dev}
[ $# -eq 0 ] || shift

scripts/setup.sh
mkdir -p "build/$preset"
log=build/$preset/configure.log
if ! cmake --preset "$preset" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
ninja -C "build/$preset" -j "${HYBRID_JOBS:-$(nproc)}" "$@"
