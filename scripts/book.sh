#!/usr/bin/env bash
# Writes the King James Bible as training text into build/data:
#
#   book.txt    one verse a line with its reference in front, 4,404,412 bytes
#   train.txt   all but the last 400,000 bytes
#   valid.txt   the last 400,000 bytes
#
# The text comes from the Debian package bible-kjv, by the command below.
set -euo pipefail
cd "$(dirname "$0")/.."

valid_bytes=400000
sha256=cd45f0c9cedab8e4439bd6486c8952c77cc8b0ecc5d1f6ae3513f2039f47229d
data=build/data

if ! command -v bible >/dev/null; then
  echo "error: the program 'bible' is missing; scripts/setup.sh installs it (package bible-kjv)" >&2
  exit 1
fi
mkdir -p "$data"
bible -f gen1:1-rev22:21 </dev/null >"$data/book.txt.part"
if ! echo "$sha256  $data/book.txt.part" | sha256sum --check --status; then
  echo "warning: this bible-kjv gives another text than the one the published numbers come from" >&2
fi
mv "$data/book.txt.part" "$data/book.txt"
# The quickstart takes valid.txt as the sign that all is there: it comes last, and
# like the others under its name only when it is whole.
head -c -"$valid_bytes" "$data/book.txt" >"$data/train.txt.part"
mv "$data/train.txt.part" "$data/train.txt"
tail -c "$valid_bytes" "$data/book.txt" >"$data/valid.txt.part"
mv "$data/valid.txt.part" "$data/valid.txt"
