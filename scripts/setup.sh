#!/usr/bin/env bash
# Installs the Debian packages that hybridc is built and tested with.
# Does nothing, and needs no rights, when all of them are there.
#
#   scripts/setup.sh [--check]     --check only says what is missing (exit 1)
set -euo pipefail

packages=(
  # Compiler, linker and the MLIR that hybridc is written on.
  clang-22 lld-22 libclang-rt-22-dev libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools
  # Build.
  cmake ninja-build ccache pkg-config git python3
  # Libraries: checksums, JSON, command line, tests, timings.
  libxxhash-dev nlohmann-json3-dev libcli11-dev libgtest-dev libbenchmark-dev
  # Style checks.
  clang-format-22 clang-tidy-22
  # The book that the demonstration trains on.
  bible-kjv
)

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
if [ "${1-}" = --check ]; then
  echo "missing Debian packages: ${missing[*]}"
  exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "error: installing needs root, and there is no sudo; as root, run:" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${#missing[@]} Debian packages (about 1 GB to download on a bare system)"
"${as_root[@]}" apt-get update -qq

for package in "${missing[@]}"; do
  candidate=$(apt-cache policy "$package" | sed -n 's/^ *Candidate: //p')
  if [ -z "$candidate" ] || [ "$candidate" = "(none)" ]; then
    echo "error: apt knows no package '$package'" >&2
    case $package in
    *-22*)
      echo "LLVM 22 comes to Debian 12 by its security archive; see that" >&2
      echo "/etc/apt/sources.list has a line such as" >&2
      echo "  deb http://security.debian.org/debian-security bookworm-security main" >&2
      ;;
    *) echo "hybridc is set up on Debian 12 (bookworm); see docs/building.md for others" >&2 ;;
    esac
    exit 1
  fi
done

"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
echo "setup: done"
