// RUN: not hybrid-opt %s -hybrid-cpu-lower-programs="level=x86-64-v9" 2>&1 | FileCheck %s

// CHECK: unknown CPU level 'x86-64-v9'; use x86-64, x86-64-v3 or x86-64-v4
module {}
