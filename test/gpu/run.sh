#!/usr/bin/env bash
# Everything that needs a GPU, in one command; the exit code says whether all of
# it passed.
#
#   test/gpu/run.sh [--quick] [--seconds=N] [--device=cuda:0] [FOLDER]
#
# FOLDER was filled by pack.sh, maybe on another machine. When run from a source
# tree without it, build/dev is packed first. --quick leaves out the long ones:
# compute-sanitizer's tools and the 200 repeats. --seconds ends in time: what was
# not begun by then is listed, and the exit code is 2 when all else passed.
# --device=cpu runs what needs no GPU, to try this program and a folder out.
#
# The python3 on PATH, or HYBRID_TEST_PYTHON, has torch. Reports of
# compute-sanitizer that are not faults are in known-reports.txt.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
quick='' limit=0 device=cuda:0
while [[ ${1:-} == --* ]]; do
  case $1 in
  --quick) quick=yes ;;
  --seconds=*) limit=${1#*=} ;;
  --device=*) device=${1#*=} ;;
  *)
    echo "unknown option '$1'; see the head of $0" >&2
    exit 2
    ;;
  esac
  shift
done
if [ $# -gt 0 ]; then
  folder=$1
elif [ -d "$here/artefacts" ]; then
  folder=$here
else
  folder=$here/../../build/gpu-tests
  "$here/pack.sh" "$here/../../build/dev" "$folder" || exit 1
fi
cd "$folder" || exit 1

failures=() skipped=()
# Seconds that are left, 0 without a limit; 1 when they are over.
left() { [ "$limit" -eq 0 ] && echo 0 || echo $((limit > SECONDS ? limit - SECONDS : 1)); }

# name, then a command whose output matters only when it fails
check() {
  local name=$1 begin=$SECONDS
  shift
  if [ "$limit" -gt 0 ] && [ "$SECONDS" -ge "$limit" ]; then
    skipped+=("$name")
    return
  fi
  if output=$("$@" 2>&1); then
    printf 'pass  %-44s %3d s\n' "$name" $((SECONDS - begin))
  else
    printf 'FAIL  %-44s %3d s\n' "$name" $((SECONDS - begin))
    printf '%s\n' "$output" | grep -v '^ok ' | tail -25
    failures+=("$name")
  fi
}

python=${HYBRID_TEST_PYTHON:-python3}
export PYTHONPATH=$PWD/python HYBRID_RUNTIME=$PWD/lib/libhybrid_runtime.so.0
export PYTHONDONTWRITEBYTECODE=1

compare() {
  check 'every mixer beside the oracle' "$python" compare.py "--device=$device" \
    "--seconds=$(left)" oracle mixers
  check 'random stacks beside the processor' "$python" compare.py "--device=$device" \
    "--seconds=$(left)" processor stacks
}
finish() {
  if [ ${#skipped[@]} -gt 0 ]; then
    printf '%d not begun for lack of time:\n' ${#skipped[@]}
    printf '  %s\n' "${skipped[@]}"
  fi
  if [ ${#failures[@]} -gt 0 ]; then
    printf '%d failed:\n' ${#failures[@]}
    printf '  %s\n' "${failures[@]}"
    exit 1
  fi
  [ ${#skipped[@]} -eq 0 ] || exit 2
  echo 'all passed'
  exit 0
}

if [ "$device" = cpu ]; then
  for artefact in artefacts/*.hbx; do
    check "$(basename "$artefact" .hbx), 65 tokens" ./check-artefact "$artefact" 65 cpu
  done
  compare
  finish
fi

if ! nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; then
  echo 'no GPU here'
  exit 1
fi

# The runtime's own model, from PTX.
HYBRID_TEST_DEVICE=$device HYBRID_FIXTURE_FOLDER=$PWD/fixture \
  check 'conformance of the runtime' ./RuntimeCoreTests --gtest_brief=1 \
  '--gtest_filter=Model.*:State.*:Trainer.*:TrainingRun.*:Evaluate.*'

# What the compiler made: every way to run it, against the processor too.
for artefact in artefacts/*.hbx; do
  name=$(basename "$artefact" .hbx)
  for tokens in 1 63 64 65 200; do
    check "$name, $tokens tokens" ./check-artefact "$artefact" "$tokens" "$device"
  done
done

compare

# A short training on both devices: the same losses up to rounding.
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
agree() {
  for where in cpu "$device"; do
    ./hybrid-run train "$1" "--device=$where" --text=architecture.md --out="$out/$2-$where" \
      --steps=20 --batch=4 --length=64 -q || return 1
  done
  paste <(grep -o '"loss":[0-9.]*' "$out/$2-cpu/log.jsonl") \
    <(grep -o '"loss":[0-9.]*' "$out/$2-$device/log.jsonl") |
    awk -F'[:\t]' '{ d = $2 - $4; if (d < 0) d = -d; if (d > worst) worst = d }
      END { print "largest difference of a loss", worst, "over", NR, "steps"
            exit !(NR == 20 && worst < 1e-3) }'
}
for artefact in artefacts/demo*.hbx; do
  name=$(basename "$artefact" .hbx)
  check "$name, losses of training" agree "$artefact" "$name"
done

# Kernels of sm_90a's own against f64, and their times beside cuBLASLt and cuDNN.
if [ -e kernels/manifest.json ] && "$python" -c 'import torch' 2>/dev/null; then
  "$python" gpu_kernels.py kernels | tee kernels/times.txt
  check 'kernels of sm_90a' test "${PIPESTATUS[0]}" = 0
fi

if [ -z "$quick" ]; then
  for artefact in artefacts/*.hbx; do
    name=$(basename "$artefact" .hbx)
    check "$name, 200 repeats of a step" ./check-artefact "$artefact" 40 "$device" --repeats=200
    for tool in memcheck racecheck initcheck synccheck; do
      check "$name, $tool" "$python" sanitize.py "$tool" ./check-artefact "$artefact" 9 "$device" \
        --no-poison
    done
  done
fi
finish
