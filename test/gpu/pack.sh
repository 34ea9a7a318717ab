#!/usr/bin/env bash
# Puts what the tests on a GPU need into one folder: programs, artefacts that were
# compiled here, and what the oracle says. The folder runs on a machine without the
# compiler (run.sh in it), which needs a python3 with torch for its comparisons.
#
#   test/gpu/pack.sh BUILD FOLDER [CHIP]
#
# FOLDER.tar.xz beside it is the same folder to be carried elsewhere, at most 64 MB.
# BUILD is a built tree, CHIP the GPU's (sm_90a when not given), or cpu to try the
# folder out without one. What is there already is kept, so that a packing which
# was interrupted goes on; what an older compiler made is made again.
# The python3 on PATH, or HYBRID_TEST_PYTHON, has torch. HYBRID_GPU_STACKS and
# HYBRID_GPU_LENGTHS choose how many random stacks there are (100, and a tenth of that
# in bf16, small and with the widths of large models) and how long sequences are.
# HYBRID_JOBS programs work at a time, one for each processor when not given.
set -euo pipefail
build=${1:?built tree} folder=${2:?folder to fill} chip=${3:-sm_90a}
source=$(cd "$(dirname "$0")/../.." && pwd)
stacks=${HYBRID_GPU_STACKS:-100}
read -ra lengths <<<"${HYBRID_GPU_LENGTHS:-1 63 64 65 1000 4096}"
limit=$((64 << 20))
jobs=${HYBRID_JOBS:-$(nproc)}
target=cpu,cuda:$chip
[ "$chip" != cpu ] || target=cpu

# The Python package goes with the shared library, which no program here is linked to.
if [ "$build/lib/libhybrid_runtime.so.0" -ot "$build/lib/libhybrid_runtime.a" ]; then
  echo "$build/lib/libhybrid_runtime.so.0 is older than the rest; build everything first" >&2
  exit 1
fi

mkdir -p "$folder"/{fixture,artefacts,mixers,stacks,sanitize,lib}
cp "$build"/bin/{hybrid-run,check-artefact,run-every-kernel,kernel-cases} "$build/test/unit/bin/RuntimeCoreTests" "$folder/"
cp "$build"/lib/libhybrid_runtime.so.0 "$folder/lib/"
strip "$folder"/{hybrid-run,check-artefact,run-every-kernel,kernel-cases,RuntimeCoreTests,lib/libhybrid_runtime.so.0}
cp "$build"/runtime/test/fixture/{*.so,*.ptx} "$folder/fixture/"
cp "$source"/test/gpu/{run.sh,losses.sh,compare.py,sizes.py,packed-hybridc.py,sanitize.py,known-reports.txt} \
  "$source/docs/rationale/architecture.md" "$folder/"
rm -rf "$folder/python"
mkdir "$folder/python"
cp -r "$source/python/hybrid" "$folder/python/"
rm -rf "$folder/python/hybrid/__pycache__"

narrow=$(mktemp -d)
trap 'rm -rf "$narrow"' EXIT
# start COMMAND...: beside others, of which no more than `jobs` run.
start() {
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
    wait -n || true
  done
  { "$@" || echo "$*" >>"$narrow/failed"; } &
}
# Until all are done.
finish() {
  wait
  [ ! -e "$narrow/failed" ] || { sed 's/^/failed: /' "$narrow/failed" >&2 && exit 1; }
}
# Under another name until it is whole: what is there already may be read meanwhile.
make_artefact() {
  "$build/bin/hybridc" "$1" "--target=$target" --jobs=1 -o "$2.part" "${@:3}" && mv "$2.part" "$2"
}
# compile SPEC ARTEFACT [OPTION...]
compile() {
  [ "$2" -nt "$build/bin/hybridc" ] || start make_artefact "$@"
}
# in_type SPEC TYPE FOLDER: a spec for another compute type, NAME-TYPE.mlir.
in_type() {
  local made
  made=$3/$(basename "$1" .mlir)-$2.mlir
  sed -E "s/^(hybrid\.model .* layers\([0-9]+\))/\1 dtype($2)/" "$1" >"$made"
  grep -q "dtype($2)" "$made" || { echo "no model in $1" >&2 && exit 1; }
  echo "$made"
}
# Cases of an older one are recorded again.
format=$("$build/bin/record-reference" --format)

# Kernels of every family and every fault of code generation, with what the
# interpreter says.
record_cases() {
  local made=$folder/cases.part
  rm -rf "$folder/cases" "$made" && mkdir "$made"
  HYBRID_GPU_CASES=$made "$build/test/unit/bin/HybridTargetNVPTXTests" \
    --gtest_brief=1 '--gtest_filter=-*Specs*' >/dev/null || return 1
  rm "$made"/*.ptx "$made"/*.mlir
  mv "$made" "$folder/cases"
}
if [ "$chip" = sm_90a ] && [ ! "$folder/cases" -nt "$build/test/unit/bin/HybridTargetNVPTXTests" ]; then
  start record_cases
fi

# Random stacks, most of the work: halves, because what small models cost is programs
# that they have in common.
tenth=$(((stacks + 9) / 10)) half=$(((stacks + 1) / 2))
for kind in "0 $half" "$half $((stacks - half))" "0 $tenth bf16" "0 $tenth bf16 wide"; do
  # shellcheck disable=SC2086 # numbers, a type and a word
  start "$build/bin/random-artefacts" "$folder/stacks" "${target#cpu,}" $kind
done

specs=("$source"/examples/specs/demo.mlir "$source"/examples/specs/demo_gla.mlir
  "$source"/test/artefacts/{softmax,recurrence,heads}.mlir)
for spec in "${specs[@]}"; do
  compile "$spec" "$folder/artefacts/$(basename "$spec" .mlir).hbx"
done
for spec in "$source"/examples/specs/demo.mlir "$source"/test/artefacts/heads.mlir; do
  for type in bf16 f16; do
    made=$(in_type "$spec" "$type" "$narrow")
    compile "$made" "$folder/artefacts/$(basename "$made" .mlir).hbx"
  done
done

# Small models with every kind of kernel, for the sanitizers.
for spec in "$source"/test/gpu/sanitize/*.mlir; do
  compile "$spec" "$folder/sanitize/$(basename "$spec" .mlir).hbx" --cpu-levels=x86-64
done

# What the cases of sizes compile, which running them in small tells.
python=${HYBRID_TEST_PYTHON:-python3}
mkdir -p "$folder/sizes"
compile "$source/test/gpu/sizes/decode.mlir" "$folder/sizes/decode.hbx" --cpu-levels=x86-64
finish # a case runs that artefact
if "$python" -c 'import torch' 2>/dev/null; then
  [ "$folder/functions" -nt "$build/bin/hybridc" ] || rm -rf "$folder/functions"
  start env "PYTHONPATH=$folder/python" "HYBRID_RUNTIME=$folder/lib/libhybrid_runtime.so.0" \
    "HYBRID_PACK_WITH=$build/bin/hybridc" "HYBRID_PACK_TARGET=$target" \
    PYTHONDONTWRITEBYTECODE=1 "$python" "$folder/sizes.py" --device=cpu --small
else
  echo "$python has no torch, so cases of sizes are left out; set HYBRID_TEST_PYTHON" >&2
fi

# The kernels of sm_90a's own, for run.sh to check and time beside PyTorch.
if [ "$chip" = sm_90a ]; then
  mkdir -p "$folder/kernels"
  "$build/bin/gpu-kernels" "$folder/kernels" "$chip" \
    "$source"/bench/programs/*-hopper*.mlir >"$folder/kernels/manifest.json"
  cp "$source/bench/gpu_kernels.py" "$folder/"
fi

# Every mixer, with what the oracle says at every length; in bf16 it says the same.
for spec in "$source"/test/gpu/mixers/*.mlir; do
  stem=$folder/mixers/$(basename "$spec" .mlir)
  compile "$spec" "$stem.hbx" --cpu-levels=x86-64
  compile "$(in_type "$spec" bf16 "$narrow")" "$stem-bf16.hbx" --cpu-levels=x86-64
  missing=()
  for length in "${lengths[@]}"; do
    { [ "$stem.$length.json" -nt "$spec" ] && grep -q "\"format\":$format\b" "$stem.$length.json"; } ||
      missing+=("$length")
  done
  [ ${#missing[@]} -eq 0 ] ||
    start "$build/bin/record-reference" "$spec" "$folder/mixers" "${missing[@]}"
done
finish

# To be unpacked with tar, or python3 -m tarfile -e.
archive=${folder%/}.tar.xz
# Artefacts have much in common, further apart than xz looks by default; searching
# it harder takes minutes and saves little.
XZ_OPT="-T$jobs --lzma2=preset=1,dict=64MiB" \
  tar -C "$(dirname "$folder")" --sort=name --exclude='*.part' -cJf "$archive.part" "$(basename "$folder")"
mv "$archive.part" "$archive"
size=$(stat -c %s "$archive")
printf '%s: %d.%d MB\n' "$archive" $((size / 1000000)) $((size / 100000 % 10))
if [ "$size" -gt "$limit" ]; then
  echo "that is more than $limit bytes; set HYBRID_GPU_STACKS below $stacks" >&2
  exit 1
fi
