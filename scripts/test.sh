#!/usr/bin/env bash
# Runs every test of hybridc: sets up what is missing, builds, then lit tests,
# unit tests and style checks. A build from nothing is also timed.
#
#   scripts/test.sh
set -euo pipefail
cd "$(dirname "$0")/.."

# What a full build may take on two processors.
build_limit_s=360

step() { printf '\n== %s\n' "$*"; }

step "packages"
scripts/setup.sh

if [ ! -e build/dev/build.ninja ]; then
  step "build from nothing (limit ${build_limit_s} s on two processors)"
  TIMEFORMAT='%U %S'
  # Without the cache, so that the number says what a newcomer waits for.
  mkdir -p build/dev
  log=build/dev/build-log.txt
  cpu=$({ time CCACHE_DISABLE=1 scripts/build.sh dev >"$log" 2>&1; } 2>&1) || {
    tail -50 "$log" >&2
    exit 1
  }
  two_cores=$(echo "$cpu" | awk '{printf "%.0f", ($1 + $2) / 2}')
  echo "full build: ${two_cores} s on two processors"
  echo "$two_cores" >build/dev/full-build-seconds
  if [ "$two_cores" -gt "$build_limit_s" ]; then
    echo "error: the full build costs ${two_cores} s on two processors, more than ${build_limit_s} s" >&2
    exit 1
  fi
else
  step "build"
  scripts/build.sh dev
fi

step "lit tests"
ninja -C build/dev check-lit

step "unit tests"
ninja -C build/dev check-unit

step "runtime under sanitizers, and a minute of fuzzing"
scripts/build.sh asan runtime/all SpecFuzz
ctest --test-dir build/asan --tests-regex '^Runtime|Fuzz$' --output-on-failure \
  --parallel "${HYBRID_JOBS:-$(nproc)}"

step "dialect reference is current"
docs/reference.py --check

step "public faults and the tests named after them"
scripts/check-cases.py

step "format and clang-tidy"
scripts/check-style.py

step "all tests passed"
