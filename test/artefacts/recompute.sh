#!/usr/bin/env bash
# Training under every choice of what backward computes again gives the same
# parameters, bit by bit.
#
#   recompute.sh HYBRIDC HYBRID_RUN TEXT
set -euo pipefail
hybridc=$1 run=$2 text=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The numbers of a .safetensors file, without the header, which has the spec.
numbers() {
  tail -c "+$(($(od -An -tu8 -N8 "$1") + 9))" "$1" >"$2"
}

for choice in none selective layer; do
  cat >"$folder/$choice.mlir" <<SPEC
hybrid.model @m vocab(256) width(32) layers(3) tied trained(64) attributes {hybrid.recompute = "$choice"} {
  hybrid.layers ["gdn", "gla", "heads"] {
    hybrid.named "gdn" { hybrid.gdn heads(2) head_dim(16) value_dim(16) }
    hybrid.named "gla" { hybrid.gla heads(1) head_dim(16) value_dim(32) conv(4) }
    hybrid.named "heads" {
      hybrid.heads total(4) {
        hybrid.softmax heads(2) head_dim(16) position(rope) window(8) qk_norm
        hybrid.softmax heads(2) head_dim(16) position(nope)
      }
    }
  }
  hybrid.mlp swiglu(48)
}
SPEC
  "$hybridc" "$folder/$choice.mlir" -o "$folder/$choice.hbx" --target=cpu --cpu-levels=x86-64
  "$run" train "$folder/$choice.hbx" --device=cpu --threads=1 --text="$text" --out="$folder/$choice" \
    --steps=5 --batch=3 --length=70 -q >"$folder/log"
done
numbers "$folder/none/checkpoint.safetensors" "$folder/expected"
"$hybridc" "$folder/none.mlir" --print-memory-plan --tokens=210 --segments=3 >"$folder/plan-of-none"
for choice in selective layer; do
  "$hybridc" "$folder/$choice.mlir" --print-memory-plan --tokens=210 --segments=3 >"$folder/plan"
  numbers "$folder/$choice/checkpoint.safetensors" "$folder/found"
  cmp "$folder/expected" "$folder/found"
  # The plans are unlike, or nothing was compared.
  if cmp -s "$folder/plan-of-none" "$folder/plan"; then exit 1; fi
  echo "$choice: the same $(stat -c %s "$folder/found") bytes"
done
