// RUN: hybrid-opt %s --hybrid-print-plan -split-input-file -verify-diagnostics -o /dev/null

// A value that is read after its memory was overwritten.

#grid = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0)>
tile.program @make(%y: !tile.view<?x8xf32>) grid #grid order [parallel] { tile.return }
tile.program @change(%x: !tile.view<?x8xf32>) grid #grid order [parallel] { tile.return }
tile.program @add(%x: !tile.view<?x8xf32>, %y: !tile.view<?x8xf32>,
                  %z: !tile.view<?x8xf32>) grid #grid order [parallel] { tile.return }
func.func @f() -> (tensor<?x8xf32> {hybrid.role = "logits"})
    attributes {hybrid.entry = "extend_all"} {
  %0 = hybrid.dispatch @make() : () -> tensor<?x8xf32>
  // expected-error @+1 {{overwrites input 0 in place, but it is read later; a copy must be scheduled}}
  %1 = hybrid.dispatch @change(%0) ties = [0, 0] : (tensor<?x8xf32>) -> tensor<?x8xf32>
  // expected-note @+1 {{read here}}
  %2 = hybrid.dispatch @add(%0, %1) : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %2 : tensor<?x8xf32>
}

// -----

// One value in two places.

#grid = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0)>
// expected-note @+1 {{value is made here}}
func.func @f(%s: tensor<?x8xf32> {hybrid.role = "labels"})
    -> (tensor<?x8xf32> {hybrid.role = "logits"})
    attributes {hybrid.entry = "extend_all"} {
  // expected-error @+1 {{in buffer 'logits', but it is made in 'labels'; a copy must be scheduled between them}}
  return %s : tensor<?x8xf32>
}

// -----

// A program with other arguments than it is given.

#grid = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0)>
tile.program @make(%x: !tile.view<?x8xf32>, %y: !tile.view<?x8xf32>) grid #grid order [parallel] { tile.return }
func.func @f() -> (tensor<?x8xf32> {hybrid.role = "logits"})
    attributes {hybrid.entry = "extend_all"} {
  // expected-error @+1 {{gives 1 views to program @make, which takes 2}}
  %0 = hybrid.dispatch @make() : () -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A view that the program was not made for.

#grid = affine_map<()[s0, s1, s2, s3, s4, s5] -> (s0)>
tile.program @make(%y: !tile.view<?x8xf32>) grid #grid order [parallel] { tile.return }
func.func @f() -> (tensor<?x16xf32> {hybrid.role = "logits"})
    attributes {hybrid.entry = "extend_all"} {
  // expected-error @+1 {{does not fit the program's argument of type '!tile.view<?x8xf32>'}}
  %0 = hybrid.dispatch @make() : () -> tensor<?x8xf32>
  %1 = hybrid.dispatch @make() : () -> tensor<?x8xf32>
  %2 = hybrid.concat %0, %1 dim 1 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
  return %2 : tensor<?x16xf32>
}

// -----

// An operation that no launch stands for.

func.func @f(%s: tensor<?x8xf32> {hybrid.role = "weights"})
    -> (tensor<?x8xf32> {hybrid.role = "logits"})
    attributes {hybrid.entry = "extend_all"} {
  // expected-error @+1 {{is not scheduled; phase 'schedule' must leave launches and views alone}}
  %0 = hybrid.neg %s : tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A caller that cannot know what an argument is.

// expected-error @+1 {{argument 0 of entry 'loss' has no hybrid.role}}
func.func @f(%s: tensor<?xf32>) attributes {hybrid.entry = "loss"} {
  return
}

// -----

// expected-error @+1 {{has the unknown hybrid.role "cotangent"}}
func.func @f(%s: tensor<?xf32> {hybrid.role = "cotangent"}) attributes {hybrid.entry = "loss"} {
  return
}

// -----

// expected-error @+1 {{result 0 of entry 'loss' has no known hybrid.role}}
func.func @f(%s: tensor<?xf32> {hybrid.role = "weights"}) -> tensor<?xf32> attributes {hybrid.entry = "loss"} {
  return %s : tensor<?xf32>
}

// -----

// Named inputs and outputs.

// expected-error @+1 {{an input of entry 'f' has no name; give it one in hybrid.path}}
func.func @f(%x: tensor<?x8xf32> {hybrid.role = "input"}) attributes {hybrid.entry = "f"} {
  return
}

// -----

// expected-error @+1 {{an output and an input of entry 'f' have the name 'x'; give each its own in hybrid.path}}
func.func @f(%x: tensor<?x8xf32> {hybrid.role = "input", hybrid.path = "x"})
    -> (tensor<?x8xf32> {hybrid.role = "output", hybrid.path = "x"}) attributes {hybrid.entry = "f"} {
  return %x : tensor<?x8xf32>
}

// -----

// expected-error @+1 {{input 'x' of entry 'f' has elements of type 'f64', expected f32, bf16, f16 or i32}}
func.func @f(%x: tensor<?x8xf64> {hybrid.role = "input", hybrid.path = "x"}) attributes {hybrid.entry = "f"} {
  return
}
