#!/usr/bin/env bash
# From nothing to a trained hybrid model that writes text, on this machine's
# processors. May be interrupted at any time; started again, it goes on where it
# was.
#
#   scripts/quickstart.sh [spec]       default: examples/specs/demo.mlir
set -euo pipefail
cd "$(dirname "$0")/.."

spec=${1:-examples/specs/demo.mlir}
if [ ! -f "$spec" ]; then
  echo "error: there is no spec '$spec'; give a file such as examples/specs/demo_gla.mlir" >&2
  exit 2
fi
name=$(basename "$spec" .mlir)
bin=build/release/bin
data=build/data
run=build/runs/$name
artefact=$run/$name.hbx

train_bytes=12000000
batch=16
learning_rate=4e-3

steps=6
step=0
say() {
  step=$((step + 1))
  printf '\n[%d/%d] %s\n' "$step" "$steps" "$*"
}

say "packages: what hybridc is built with, by scripts/setup.sh"
scripts/setup.sh

say "build: the compiler hybridc and the program hybrid-run (about 3 minutes on two processors)"
scripts/build.sh release hybridc hybrid-run

say "book: the King James Bible, 4.4 MB; the last 400,000 bytes are kept for validation"
[ -e "$data/valid.txt" ] || scripts/book.sh

say "compile: $spec to one artefact for this kind of processor"
mkdir -p "$run"
"$bin/hybridc" "$spec" -o "$artefact" --target=cpu

say "train: ${train_bytes} bytes of the book (about 12 minutes on two processors), then validate on text the model has not seen"
"$bin/hybrid-run" train "$artefact" --text="$data/train.txt" --valid="$data/valid.txt" \
  --out="$run" --bytes="$train_bytes" --batch="$batch" --lr="$learning_rate"

say "write: 400 bytes"
"$bin/hybrid-run" generate "$artefact" --weights="$run" --prompt="In the beginning" --bytes=400
echo
