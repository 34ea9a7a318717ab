#!/bin/sh
# Installs a build into a temporary prefix, then builds and runs one C and one
# C++ program against it, found by CMake and by pkg-config.
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

library=$LD_LIBRARY_PATH/libhybrid_runtime.so
size=$(stat -L -c %s "$library")
[ "$size" -le 5000000 ] || { echo "error: $library has $size bytes, more than 5,000,000"; exit 1; }
if ldd "$library" | grep -iE 'llvm|mlir'; then
  echo "error: the runtime links LLVM"
  exit 1
fi
