#!/bin/sh
# Compiles a spec and checks that its artefact agrees with itself, on the processor
# and on a GPU that the fake driver plays with the same code.
#
#   check.sh <hybridc> <check-artefact> <spec> <fake-gpu-artefact> <fake driver> <run-every-kernel>
set -eu
artefact=$(mktemp --suffix=.hbx)
trap 'rm -f "$artefact" "$artefact.gpu"' EXIT
"$1" "$3" -o "$artefact" --cpu-levels=x86-64-v3
"$2" "$artefact" 70
"$2" "$artefact" 1
"$4" "$artefact" "$artefact.gpu"
export HYBRID_CUDA_DRIVER="$5" HYBRID_CUBLASLT="$5"
"$2" "$artefact.gpu" 20 cuda:0 --repeats=3 --no-poison
"$2" "$artefact.gpu" 20 cuda:0 --repeats=3 --no-poison --products=cublaslt
"$6" "$artefact.gpu" 40 cuda:0 --count
