#!/bin/sh
# Installs a build into a temporary prefix, then builds and runs one C and one
# C++ program against it, found by CMake and by pkg-config, and the examples that
# the headers begin with.
#
#   run.sh <build> <cc> <c++>
set -eu
build=$1 cc=$2 cxx=$3
source=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --component runtime --prefix "$work/prefix" >"$work/log"

cmake -G Ninja -S "$source" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/prefix" \
  -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" >>"$work/log"
cmake --build "$work/cmake" >>"$work/log" || { cat "$work/log"; exit 1; }
"$work/cmake/c_consumer"
"$work/cmake/cpp_consumer"

PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name hybridc.pc)")
export PKG_CONFIG_PATH
flags=$(pkg-config --cflags --libs hybridc)
LD_LIBRARY_PATH=$(pkg-config --variable=libdir hybridc)
export LD_LIBRARY_PATH
# shellcheck disable=SC2086 # the flags are words
"$cc" "$source/c_consumer.c" -o "$work/c_consumer" $flags
"$cxx" -std=c++17 "$source/cpp_consumer.cpp" -o "$work/cpp_consumer" $flags
"$work/c_consumer"
"$work/cpp_consumer"

# An example loads what `hybrid-run train --out=run` makes, and ends with the
# error when there is none.
headers=$(pkg-config --variable=includedir hybridc)/hybrid
mkdir "$work/examples"
cd "$work/examples"
sed -n '/^ \*   #include/,/^ \* Objects/{/Objects/d;s/^ \* \{0,3\}//p;}' \
  "$headers/runtime.h" >example.c
{
  printf '#include <hybrid/runtime.hpp>\n#include <iostream>\nint main() try {\n'
  sed -n 's|^//   ||p' "$headers/runtime.hpp"
  printf '} catch (const hyb::Error &error) {\n  std::cerr << error.what();\n  return 1;\n}\n'
} >example.cpp
# shellcheck disable=SC2086 # the flags are words
"$cc" -std=c99 -Wall -Werror example.c -o from_c $flags
# shellcheck disable=SC2086
"$cxx" -std=c++17 example.cpp -o from_cpp $flags
for program in ./from_c ./from_cpp; do
  "$program" 2>error && { echo "error: $program ends with 0 without an artefact"; exit 1; }
  grep demo.hbx error
done
printf 'hybrid.model @demo vocab(256) width(16) layers(1) {\n  hybrid.%s\n}\n' \
  'softmax heads(1) head_dim(16) position(nope)' >demo.mlir
"$build/bin/hybridc" demo.mlir -o demo.hbx
"$build/bin/hybrid-run" train demo.hbx --text=example.c --length=16 --steps=1 --out=run -q
for program in ./from_c ./from_cpp; do
  "$program" >text
  [ "$(wc -c <text)" = 256 ] || { echo "error: $program wrote another number of bytes"; exit 1; }
done

library=$LD_LIBRARY_PATH/libhybrid_runtime.so
size=$(stat -L -c %s "$library")
[ "$size" -le 5000000 ] || { echo "error: $library has $size bytes, more than 5,000,000"; exit 1; }
if ldd "$library" | grep -iE 'llvm|mlir'; then
  echo "error: the runtime links LLVM"
  exit 1
fi
