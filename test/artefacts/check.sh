#!/bin/sh
# Compiles a spec and checks that its artefact agrees with itself.
#
#   check.sh <hybridc> <check-artefact> <spec>
set -eu
artefact=$(mktemp --suffix=.hbx)
trap 'rm -f "$artefact"' EXIT
"$1" "$3" -o "$artefact" --cpu-levels=x86-64-v3
"$2" "$artefact" 70
