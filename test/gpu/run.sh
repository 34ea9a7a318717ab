#!/usr/bin/env bash
# Everything that needs a GPU, in one command; the exit code says whether all of
# it passed.
#
#   test/gpu/run.sh [--quick] [FOLDER]
#
# FOLDER was filled by pack.sh, maybe on another machine. When run from a source
# tree without it, build/dev is packed first. --quick leaves out the long ones:
# compute-sanitizer's tools and the 200 repeats.
#
# Known reports of compute-sanitizer that are not faults: none so far.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
quick=
if [ "${1:-}" = --quick ]; then
  quick=yes
  shift
fi
if [ $# -gt 0 ]; then
  folder=$1
elif [ -d "$here/artefacts" ]; then
  folder=$here
else
  folder=$here/../../build/gpu-tests
  "$here/pack.sh" "$here/../../build/dev" "$folder" || exit 1
fi
cd "$folder" || exit 1

failures=()
# name, then a command whose output matters only when it fails
check() {
  local name=$1 begin=$SECONDS
  shift
  if output=$("$@" 2>&1); then
    printf 'pass  %-44s %3d s\n' "$name" $((SECONDS - begin))
  else
    printf 'FAIL  %-44s %3d s\n' "$name" $((SECONDS - begin))
    printf '%s\n' "$output" | grep -v '^ok ' | tail -25
    failures+=("$name")
  fi
}

if ! nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; then
  echo 'no GPU here'
  exit 1
fi

# The runtime's own model, from PTX.
HYBRID_TEST_DEVICE=cuda:0 HYBRID_FIXTURE_FOLDER=$PWD/fixture \
  check 'conformance of the runtime' ./RuntimeCoreTests --gtest_brief=1 \
  '--gtest_filter=Model.*:State.*:Trainer.*:TrainingRun.*:Evaluate.*'

# What the compiler made: every way to run it, against the processor too.
for artefact in artefacts/*.hbx; do
  name=$(basename "$artefact" .hbx)
  for tokens in 1 63 64 65 200; do
    check "$name, $tokens tokens" ./check-artefact "$artefact" "$tokens" cuda:0
  done
done

# A short training on both devices: the same losses up to rounding.
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
agree() {
  for device in cpu cuda:0; do
    ./hybrid-run train "$1" --device=$device --text=architecture.md --out="$out/$2-$device" \
      --steps=20 --batch=4 --length=64 -q || return 1
  done
  paste <(grep -o '"loss":[0-9.]*' "$out/$2-cpu/log.jsonl") \
    <(grep -o '"loss":[0-9.]*' "$out/$2-cuda:0/log.jsonl") |
    awk -F'[:\t]' '{ d = $2 - $4; if (d < 0) d = -d; if (d > worst) worst = d }
      END { print "largest difference of a loss", worst, "over", NR, "steps"
            exit !(NR == 20 && worst < 1e-3) }'
}
for artefact in artefacts/demo*.hbx; do
  name=$(basename "$artefact" .hbx)
  check "$name, losses of training" agree "$artefact" "$name"
done

# Kernels of sm_90a's own against f64, and their times beside cuBLASLt and cuDNN.
if [ -e kernels/manifest.json ] && python3 -c 'import torch' 2>/dev/null; then
  python3 gpu_kernels.py kernels | tee kernels/times.txt
  check 'kernels of sm_90a' test "${PIPESTATUS[0]}" = 0
fi

if [ -z "$quick" ]; then
  for artefact in artefacts/*.hbx; do
    name=$(basename "$artefact" .hbx)
    check "$name, 200 repeats of a step" ./check-artefact "$artefact" 40 cuda:0 --repeats=200
    for tool in memcheck racecheck initcheck synccheck; do
      check "$name, $tool" compute-sanitizer --tool "$tool" --error-exitcode 9 \
        ./check-artefact "$artefact" 9 cuda:0 --no-poison
    done
  done
fi

if [ ${#failures[@]} -gt 0 ]; then
  printf '%d failed:\n' ${#failures[@]}
  printf '  %s\n' "${failures[@]}"
  exit 1
fi
echo 'all passed'
