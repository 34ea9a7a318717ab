#!/usr/bin/env bash
# large-heads.sh HYBRIDC: 32 heads of 256 in f32 that share their keys do not fit
# into a block of an Ada chip: an error of the spec, at the mixer, with both
# sizes and the way out, and no file.
set -euo pipefail
hybridc=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/large.mlir" <<'SPEC'
hybrid.model @m vocab(8) width(16) layers(1) {
  hybrid.softmax heads(32) kv_heads(1) head_dim(256) position(nope)
}
SPEC
code=0
said=$("$hybridc" "$folder/large.mlir" --target=cuda:sm_89 -o "$folder/a.hbx" 2>&1) || code=$?
expected='large\.mlir:2:3: error: a kernel needs [0-9]+ bytes of shared memory, a block of sm_89 has at most 101376; use smaller heads, or compile for sm_80 or sm_90a or sm_100a'
if [[ $code != 1 || ! $said =~ $expected || -e $folder/a.hbx ]]; then
  echo "exit code $code, expected 1 and $expected; hybridc said:" >&2
  echo "$said" >&2
  exit 1
fi
