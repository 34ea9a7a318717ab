#!/usr/bin/env bash
# Everything that needs a GPU, in one command; the exit code says whether all of
# it passed.
#
#   test/gpu/run.sh [--parts=PART[:SECONDS],...] [--seconds=N] [--jobs=N] [--mps]
#                   [--device=cuda:0] [FOLDER]
#
# FOLDER was filled by pack.sh, maybe on another machine. When run from a source
# tree without it, build/dev is packed first. The parts, in the order in which they
# run unless --parts gives another:
#
#   oracle       every mixer beside what the oracle said
#   stacks       random stacks beside the processor
#   cases        kernels of every family beside the interpreter's results
#   conformance  the runtime's own tests
#   training     the losses of a short training beside those of the processor
#   artefacts    every way to run an artefact that must agree
#   repeats      200 repeats of a training step: the same bits
#   sizes        past 2^31 elements, extreme numbers; alone, because of its memory
#   kernels      those of sm_90a's own, and their times beside PyTorch
#   sanitize     compute-sanitizer's tools on every kind of kernel; only when asked
#
# --seconds ends all of it in time, SECONDS a part; with sanitize each tool has them.
# What was not done by then is listed, and the exit code is 2 when all else passed.
# Models beside the oracle, random stacks and tools share the GPU in --jobs processes
# (8). So do the other checks when --jobs is given or with --mps, which starts
# NVIDIA's multi-process service for them where there is one; else one follows the
# other: eight at once took twenty times as long each, because a GPU gives every
# process a time slice between its short launches. --device=cpu runs what needs no
# GPU, to try this program and a folder out.
#
# The python3 on PATH, or HYBRID_TEST_PYTHON, has torch. Reports of
# compute-sanitizer that are not faults are in known-reports.txt. With HYBRID_TEST_LOG,
# the name of a file, it gets all output of checks that failed or ran under a tool.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
parts='' limit=0 jobs=8 alone=yes mps='' device=cuda:0
while [[ ${1:-} == --* ]]; do
  case $1 in
  --parts=*) parts=${1#*=} ;;
  --seconds=*) limit=${1#*=} ;;
  --jobs=*) jobs=${1#*=} alone='' ;;
  --mps) mps=yes ;;
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

over=0 # when time is over, in seconds of this program; 0: never
# Seconds that are left, 0 without a limit; 1 when they are over.
left() {
  [ "$over" -eq 0 ] && echo 0 || echo $((over > SECONDS ? over - SECONDS : 1))
}
# set_limit SECONDS: from now on, within the limit of all; 0: that limit alone.
set_limit() {
  over=$limit
  if [ "$1" -gt 0 ] && { [ "$limit" -eq 0 ] || [ $((SECONDS + $1)) -lt "$limit" ]; }; then
    over=$((SECONDS + $1))
  fi
}

# What ends a check that does not end by itself when time is over.
grace() {
  local seconds
  seconds=$(left)
  echo $((seconds > 0 ? seconds + 3 : 0))
}

log=${HYBRID_TEST_LOG:-/dev/null}
# A job of its own: its line, and its output where that matters. The result is a
# file, so that the last line can tell what failed.
run_check() {
  local name=$1 start=$SECONDS code=0 output
  shift
  output=$(timeout -k 5 "$(grace)" "$@" 2>&1) || code=$?
  if [ $code -eq 0 ]; then
    printf 'pass  %-48s %3d s\n' "$name" $((SECONDS - start))
    # What a check found, where it says so.
    printf '%s\n' "$output" | grep -E '^[0-9]+ passed, |kernels ran$|cases failed$|^largest difference |^  did not run: |^known, '
    echo >"$(mktemp "$out/passed.XXXXXX")"
  elif [ $code -eq 124 ] || [ $code -eq 137 ]; then
    echo "$name" >"$(mktemp "$out/skipped.XXXXXX")"
  else
    echo "$name" >"$(mktemp "$out/failed.XXXXXX")"
    printf 'FAIL  %-48s %3d s\n%s\n' "$name" $((SECONDS - start)) \
      "$(printf '%s\n' "$output" | grep -v '^ok ' | tail -25)"
  fi
  # One write, so that jobs do not mix.
  printf '%s\n' "== $name: exit code $code after $((SECONDS - start)) s" "$output" >>"$log"
}

# name, then a command whose output matters only when it fails
check() {
  if [ "$over" -gt 0 ] && [ $SECONDS -ge "$over" ]; then
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
  printf '%d passed in %d seconds\n' "$(find "$out" -name 'passed.*' | wc -l)" $SECONDS
  [ -z "$skipped" ] || printf 'not done for lack of time:\n%s\n' "$skipped"
  if [ -n "$failed" ]; then
    printf 'failed:\n%s\n' "$failed"
    exit 1
  fi
  [ -z "$skipped" ] || exit 2
  echo 'all passed'
  exit 0
}

# compare.py WHAT FOLDER: it ends by itself a little before the time is over, to say
# what it found.
compare() {
  local seconds
  seconds=$(left)
  [ "$seconds" -le 20 ] || seconds=$((seconds - 10))
  share=1
  check "$1" "$python" compare.py "--device=$device" "--jobs=$jobs" "--seconds=$seconds" "$2" "$3"
  wait
  share=$jobs
}

# Of an artefact in a narrow type, the same in f32.
exact() {
  local wide=${1%-*}.hbx
  case $1 in *-bf16.hbx | *-f16.hbx) [ ! -e "$wide" ] || echo "--exact=$wide" ;; esac
}

run_oracle() { compare 'every mixer beside the oracle' oracle mixers; }
run_cases() {
  [ -d cases ] && check 'kernels beside the interpreter' ./kernel-cases cases/*.case
}
run_stacks() { compare 'random stacks beside the processor' processor stacks; }

# The runtime's own model, from PTX.
run_conformance() {
  check 'conformance of the runtime' env "HYBRID_TEST_DEVICE=$device" \
    "HYBRID_FIXTURE_FOLDER=$PWD/fixture" ./RuntimeCoreTests --gtest_brief=1 \
    '--gtest_filter=Model.*:State.*:Trainer.*:TrainingRun.*:Evaluate.*'
}

# The same losses up to rounding.
run_training() {
  local artefact name
  for artefact in artefacts/demo*.hbx; do
    name=$(basename "$artefact" .hbx)
    check "$name, losses of training" ./losses.sh "$artefact" "$device" "$out/$name"
  done
}

# What the compiler made: every way to run it, against the processor too.
run_artefacts() {
  local artefact tokens name
  for artefact in artefacts/*.hbx; do
    name=$(basename "$artefact" .hbx)
    for tokens in 1 63 64 65 200; do
      [ "$device" != cpu ] || [ "$tokens" = 65 ] || continue
      # shellcheck disable=SC2046 # an option or nothing
      check "$name, $tokens tokens" ./check-artefact "$artefact" "$tokens" "$device" \
        $(exact "$artefact")
    done
  done
}

run_repeats() {
  local artefact
  for artefact in artefacts/*.hbx mixers/*.hbx sanitize/*.hbx; do
    check "$(basename "$artefact" .hbx), 200 repeats of a step" \
      ./check-artefact "$artefact" 130 "$device" --repeats=200 \
      --only-repeats --no-poison
  done
}

# Left out where nothing was packed for it.
run_sizes() {
  [ -d functions ] || return
  local small=''
  [ "$device" != cpu ] || small=--small
  share=1
  check 'sizes and extreme numbers' "$python" sizes.py "--device=$device" \
    "--seconds=$(left)" $small
  wait
  share=$jobs
}

# Kernels of sm_90a's own against f64, and their times beside cuBLASLt and cuDNN.
run_kernels() {
  [ -e kernels/manifest.json ] && "$python" -c 'import torch' 2>/dev/null || return
  check 'kernels of sm_90a' sh -c "'$python' gpu_kernels.py kernels >kernels/times.txt 2>&1 ||
    { cat kernels/times.txt && false; }"
  wait
  cat kernels/times.txt
}

# Long calls are for the model that is there for them.
run_sanitize() {
  local tool artefact tokens name seconds=$1
  for tool in racecheck synccheck memcheck initcheck; do
    set_limit "$seconds"
    for artefact in sanitize/*.hbx; do
      name=$(basename "$artefact" .hbx) tokens=300
      # Words of `long` are what racecheck takes minutes for; `parts` has the rest of it.
      [ "$name $tool" != 'long racecheck' ] || continue
      case $name in long | parts) tokens=4100 ;; esac
      check "$name, $tool" "$python" sanitize.py "--seconds=$(left)" "$tool" \
        ./run-every-kernel "$artefact" "$tokens" "$device"
    done
    wait
  done
  # That the tools saw everything.
  set_limit "$seconds"
  for artefact in sanitize/*.hbx; do
    name=$(basename "$artefact" .hbx) tokens=300
    case $name in long | parts) tokens=4100 ;; esac
    check "$name, every kernel runs" ./run-every-kernel "$artefact" "$tokens" "$device" --count
  done
}

# NVIDIA's multi-process service, with pipes of its own, which only checks that are
# told of them use. Without it `alone` stays.
start_mps() {
  local pipes=$out/mps
  command -v nvidia-cuda-mps-control >/dev/null || { echo 'no multi-process service here' && return; }
  mkdir -p "$pipes"
  export CUDA_MPS_PIPE_DIRECTORY=$pipes CUDA_MPS_LOG_DIRECTORY=$pipes
  # shellcheck disable=SC2012 # the first of our own names
  if nvidia-cuda-mps-control -d >/dev/null 2>&1 &&
    timeout 30 ./check-artefact "$(ls artefacts/*.hbx | head -1)" 1 "$device" >/dev/null 2>&1; then
    alone=''
    return
  fi
  stop_mps
  echo 'the multi-process service does not work here'
}
stop_mps() {
  echo quit | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1
  unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

if [ "$device" = cpu ]; then
  [ -n "$parts" ] || parts=oracle,stacks,sizes,artefacts
elif ! nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader; then
  echo 'no GPU here'
  exit 1
fi
[ -n "$parts" ] || parts=cases,oracle,stacks,conformance,training,artefacts,repeats,sizes,kernels

all_jobs=$jobs
# For a part of many processes with short launches.
share_gpu() {
  [ -z "$mps" ] || [ "$device" = cpu ] || start_mps
}
# One process at a time, unless several share the GPU well.
take_turns() {
  share_gpu
  [ -z "$alone" ] || [ "$device" = cpu ] || { jobs=1 && share=1; }
}
for part in ${parts//,/ }; do
  seconds=0
  case $part in *:*) seconds=${part#*:} part=${part%%:*} ;; esac
  set_limit "$seconds"
  jobs=$all_jobs share=$all_jobs
  case $part in
  oracle) share_gpu; run_oracle ;;
  stacks) share_gpu; run_stacks ;;
  cases) run_cases ;;
  conformance) run_conformance ;;
  training) take_turns; run_training ;;
  artefacts) take_turns; run_artefacts ;;
  repeats) take_turns; run_repeats ;;
  sizes) run_sizes ;;
  kernels) run_kernels ;;
  sanitize) run_sanitize "$seconds" ;;
  *)
    echo "unknown part '$part'; see the head of $0" >&2
    exit 2
    ;;
  esac
  wait
  [ -z "${CUDA_MPS_PIPE_DIRECTORY:-}" ] || stop_mps
  echo "-- $part until $SECONDS s"
done
finish
