#!/usr/bin/env bash
# Everything that needs a GPU, in one command; the exit code says whether all of
# it passed.
#
#   test/gpu/run.sh [--quick | --sanitize] [--seconds=N] [--jobs=N] [--device=cuda:0] [FOLDER]
#
# FOLDER was filled by pack.sh, maybe on another machine. When run from a source
# tree without it, build/dev is packed first. --quick leaves out the 200 repeats.
# --sanitize runs compute-sanitizer's tools and nothing else. --seconds ends in
# time: what was not done by then is listed, and the exit code is 2 when all else
# passed; with --sanitize each of the tools has the time. Models beside the oracle
# and random stacks share the GPU in --jobs processes (8). So do the other checks
# when --jobs is given, else one follows the other: eight at once took twenty times
# as long each, because a GPU gives every process a time slice between its short
# launches. --device=cpu runs what needs no GPU, to try this program and a folder
# out.
#
# The python3 on PATH, or HYBRID_TEST_PYTHON, has torch. Reports of
# compute-sanitizer that are not faults are in known-reports.txt.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
quick='' sanitize='' limit=0 jobs=8 alone=yes device=cuda:0
while [[ ${1:-} == --* ]]; do
  case $1 in
  --quick) quick=yes ;;
  --sanitize) sanitize=yes ;;
  --seconds=*) limit=${1#*=} ;;
  --jobs=*) jobs=${1#*=} alone='' ;;
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

python=${HYBRID_TEST_PYTHON:-python3}
export PYTHONPATH=$PWD/python HYBRID_RUNTIME=$PWD/lib/libhybrid_runtime.so.0
export PYTHONDONTWRITEBYTECODE=1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Runtimes take the processors they may run on, and their threads spin: each job has
# processors of its own.
cores=$(nproc) slot=0 share=$jobs
# The processors of the next of `share` jobs.
processors() {
  local width=$((cores > share ? cores / share : 1))
  local first=$((slot % share * width % cores))
  echo "$first-$((first + width - 1))"
}

begin=0 # of what --seconds limits
# Seconds that are left, 0 without a limit; 1 when they are over.
left() {
  local end=$((begin + limit))
  [ "$limit" -eq 0 ] && echo 0 || echo $((end > SECONDS ? end - SECONDS : 1))
}

# A job of its own: its line, and its output where that matters. The result is a
# file, so that the last line can tell what failed.
run_check() {
  local name=$1 start=$SECONDS code=0 output
  shift
  output=$(timeout "$(left)" "$@" 2>&1) || code=$?
  if [ $code -eq 0 ]; then
    printf 'pass  %-44s %3d s\n' "$name" $((SECONDS - start))
  elif [ $code -eq 124 ]; then
    echo "$name" >"$(mktemp "$out/skipped.XXXXXX")"
  else
    echo "$name" >"$(mktemp "$out/failed.XXXXXX")"
    printf 'FAIL  %-44s %3d s\n%s\n' "$name" $((SECONDS - start)) \
      "$(printf '%s\n' "$output" | grep -v '^ok ' | tail -25)"
  fi
}

# name, then a command whose output matters only when it fails
check() {
  if [ "$limit" -gt 0 ] && [ $((SECONDS - begin)) -ge "$limit" ]; then
    echo "$1" >"$(mktemp "$out/skipped.XXXXXX")"
    return
  fi
  local name=$1
  shift
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
    wait -n
  done
  run_check "$name" taskset -c "$(processors)" "$@" &
  slot=$((slot + 1))
}

finish() {
  wait
  local skipped failed
  skipped=$(cat "$out"/skipped.* 2>/dev/null)
  failed=$(cat "$out"/failed.* 2>/dev/null)
  printf '%d seconds\n' $SECONDS
  [ -z "$skipped" ] || printf 'not done for lack of time:\n%s\n' "$skipped"
  if [ -n "$failed" ]; then
    printf 'failed:\n%s\n' "$failed"
    exit 1
  fi
  [ -z "$skipped" ] || exit 2
  echo 'all passed'
  exit 0
}

# Half of the jobs and processors each: both have many models. They end by themselves a little
# before the time is over, to say what they found.
compare() {
  local seconds share=$((jobs > 1 ? 2 : 1))
  seconds=$(left)
  [ "$seconds" -le 20 ] || seconds=$((seconds - 10))
  check 'every mixer beside the oracle' "$python" compare.py "--device=$device" \
    "--jobs=$(((jobs + 1) / 2))" "--seconds=$seconds" oracle mixers
  check 'random stacks beside the processor' "$python" compare.py "--device=$device" \
    "--jobs=$(((jobs + 1) / 2))" "--seconds=$seconds" processor stacks
  wait
}

# Of an artefact in a narrow type, the same in f32.
exact() {
  local wide=${1%-*}.hbx
  case $1 in *-bf16.hbx | *-f16.hbx) [ ! -e "$wide" ] || echo "--exact=$wide" ;; esac
}

# Sizes past 2^31 and the like. Left out where nothing was packed for it.
sizes() {
  [ ! -d functions ] || check 'sizes and extreme numbers' "$python" sizes.py \
    "--device=$device" "--seconds=$(left)" "$@"
}

if [ "$device" = cpu ]; then
  compare
  sizes --small
  # shellcheck disable=SC2046 # an option or nothing
  for artefact in artefacts/*.hbx; do
    check "$(basename "$artefact" .hbx), 65 tokens" ./check-artefact "$artefact" 65 cpu \
      $(exact "$artefact")
  done
  finish
fi

if ! nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; then
  echo 'no GPU here'
  exit 1
fi

if [ -n "$sanitize" ]; then
  for tool in memcheck racecheck initcheck synccheck; do
    begin=$SECONDS
    for artefact in artefacts/*.hbx; do
      check "$(basename "$artefact" .hbx), $tool" "$python" sanitize.py "$tool" \
        ./check-artefact "$artefact" 9 "$device" --no-poison
    done
    wait
  done
  finish
fi

# The longest first.
compare
[ -z "$alone" ] || jobs=1 share=1

# The runtime's own model, from PTX.
check 'conformance of the runtime' env "HYBRID_TEST_DEVICE=$device" \
  "HYBRID_FIXTURE_FOLDER=$PWD/fixture" ./RuntimeCoreTests --gtest_brief=1 \
  '--gtest_filter=Model.*:State.*:Trainer.*:TrainingRun.*:Evaluate.*'

# A short training on both devices: the same losses up to rounding.
for artefact in artefacts/demo*.hbx; do
  name=$(basename "$artefact" .hbx)
  check "$name, losses of training" ./losses.sh "$artefact" "$device" "$out/$name"
done

# What the compiler made: every way to run it, against the processor too.
for artefact in artefacts/*.hbx; do
  name=$(basename "$artefact" .hbx)
  # shellcheck disable=SC2046 # an option or nothing
  for tokens in 1 63 64 65 200; do
    check "$name, $tokens tokens" ./check-artefact "$artefact" "$tokens" "$device" \
      $(exact "$artefact")
  done
  [ -n "$quick" ] ||
    check "$name, 200 repeats of a step" ./check-artefact "$artefact" 40 "$device" --repeats=200
done
wait
sizes # alone, because of its memory
wait

# Kernels of sm_90a's own against f64, and their times beside cuBLASLt and cuDNN.
if [ -e kernels/manifest.json ] && "$python" -c 'import torch' 2>/dev/null; then
  jobs=1
  check 'kernels of sm_90a' sh -c "'$python' gpu_kernels.py kernels >kernels/times.txt 2>&1 ||
    { cat kernels/times.txt && false; }"
  wait
  cat kernels/times.txt
fi
finish
