// RUN: hybrid-opt %s --hybrid-schedule -split-input-file -verify-diagnostics
// RUN: not hybrid-opt %s --hybrid-schedule=target=abacus -split-input-file 2>&1 | FileCheck %s

// CHECK: error: target 'abacus' has no strategies; this hybridc has: cpu, cuda, cuda:sm_89, cuda:sm_120a, cuda:sm_100a, cuda:sm_90a

func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> attributes {hybrid.entry = "loss"} {
  // expected-error @+1 {{has no strategy for target 'cpu'; schedule knows graph operations alone}}
  %0 = math.exp %x : tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// A shape that the family refuses.

func.func @f(%q: tensor<?x1x600xf32>, %s: !hybrid.segments) -> tensor<?x1x600xf32>
    attributes {hybrid.entry = "loss"} {
  // expected-error @+1 {{512}}
  %o = hybrid.recurrence additive %q, %q, %q, %s scale 1.0
      : (tensor<?x1x600xf32>, tensor<?x1x600xf32>, tensor<?x1x600xf32>, !hybrid.segments)
        -> tensor<?x1x600xf32>
  return %o : tensor<?x1x600xf32>
}
