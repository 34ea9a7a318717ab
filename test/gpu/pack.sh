#!/usr/bin/env bash
# Puts what the tests on a GPU need into one folder: programs, and artefacts that
# were compiled here. The folder runs on a machine without the compiler.
#
#   test/gpu/pack.sh BUILD FOLDER [CHIP]
#
# BUILD is a built tree, CHIP the GPU's (sm_90a when not given).
set -euo pipefail
build=${1:?built tree} folder=${2:?folder to fill} chip=${3:-sm_90a}
source=$(cd "$(dirname "$0")/../.." && pwd)

mkdir -p "$folder/fixture" "$folder/artefacts"
cp "$build"/bin/{hybrid-run,check-artefact} "$build/test/unit/bin/RuntimeCoreTests" "$folder/"
strip "$folder"/{hybrid-run,check-artefact,RuntimeCoreTests}
cp "$build"/runtime/test/fixture/{*.so,*.ptx} "$folder/fixture/"
cp "$source/test/gpu/run.sh" "$source/docs/rationale/architecture.md" "$folder/"

specs=("$source"/examples/specs/demo.mlir "$source"/examples/specs/demo_gla.mlir
  "$source"/test/artefacts/{softmax,recurrence,heads}.mlir)
for spec in "${specs[@]}"; do
  "$build/bin/hybridc" "$spec" "--target=cpu,cuda:$chip" \
    -o "$folder/artefacts/$(basename "$spec" .mlir).hbx"
done

# The kernels of sm_90a's own, for run.sh to check and time beside PyTorch.
if [ "$chip" = sm_90a ]; then
  mkdir -p "$folder/kernels"
  "$build/bin/gpu-kernels" "$folder/kernels" "$chip" \
    "$source"/bench/programs/*-hopper*.mlir >"$folder/kernels/manifest.json"
  cp "$source/bench/gpu_kernels.py" "$folder/"
fi
