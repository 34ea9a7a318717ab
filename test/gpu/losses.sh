#!/usr/bin/env bash
# A short training on the processor and on a device: the same losses up to
# rounding, which the artefact's compute type says.
#
# The learning rate is a third of the default: at that one the first steps are
# chaotic. Two levels of one processor, in f32, are then 0.03 apart after 20 steps of
# demo_gla, here 8e-5 (bf16: 2e-4), and the loss still falls by more than 1.
#
#   losses.sh ARTEFACT DEVICE FOLDER
#
# Runs in a folder that pack.sh filled; FOLDER is for what the two runs write.
set -euo pipefail
artefact=$1 device=$2 folder=$3
for where in cpu "$device"; do
  ./hybrid-run train "$artefact" "--device=$where" --text=architecture.md \
    "--out=$folder/$where" --steps=20 --batch=4 --length=64 --lr=1e-3 -q
done
case $(./hybrid-run info "$artefact" | awk '$1 == "compute" { print $3 }') in
f32) bound=5e-4 ;;
f16) bound=2e-3 ;;
bf16) bound=1e-2 ;;
*) echo "no bound is known of models in this type" >&2 && exit 1 ;;
esac
paste <(grep -o '"loss":[0-9.]*' "$folder/cpu/log.jsonl") \
  <(grep -o '"loss":[0-9.]*' "$folder/$device/log.jsonl") |
  awk -F'[:\t]' -v bound="$bound" '
    NR == 1 { first = $2 }
    { d = $2 - $4; if (d < 0) d = -d; if (d > worst) worst = d; last = $2 }
    END { print "largest difference of a loss", worst, "over", NR, "steps, bound", bound
          print "the loss went from", first, "to", last
          exit !(NR == 20 && worst < bound && last < first - 1) }'
