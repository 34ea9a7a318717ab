// What is computed again in backward is launched again: phase `tile` simplifies
// programs and leaves the launches of an entry as they are.
// RUN: hybrid-opt %s -hybrid-differentiate=recompute=layer | hybridc - --compile-to=tile -o - | FileCheck %s

#embed = loc("embed"("m.mlir":1:1))
#l0 = loc("layers.0.mlp"("m.mlir":2:1))

// CHECK-LABEL: func.func @backward(
// CHECK:         %[[X:.+]] = hybrid.dispatch @[[EMBED:embed_[0-9a-f]+]]
// Forward, then again for the gradient of the sum.
// CHECK:         hybrid.dispatch @[[UP:product_[0-9a-f]+]](%[[X]], %[[W:.+]]) :
// CHECK:         hybrid.dispatch @cross_entropy_grad
// CHECK:         hybrid.dispatch @[[UP]](%[[X]], %[[W]]) :
module attributes {
  hybrid.meta = {name = "m", trained_length = 0 : i64, vocab = 16 : i64},
  hybrid.params = [
    {decay = true, init = "ones", path = "embed.weight", shape = array<i64: 16, 64>},
    {decay = true, init = "ones", path = "layers.0.mlp.up_proj.weight", shape = array<i64: 64, 64>},
    {decay = true, init = "ones", path = "layers.0.mlp.down_proj.weight", shape = array<i64: 64, 64>}],
  hybrid.states = []} {
func.func @loss(%table: tensor<16x64xf32> {hybrid.role = "param", hybrid.path = "embed.weight"},
                %up: tensor<64x64xf32> {hybrid.role = "param", hybrid.path = "layers.0.mlp.up_proj.weight"},
                %down: tensor<64x64xf32> {hybrid.role = "param", hybrid.path = "layers.0.mlp.down_proj.weight"},
                %ids: tensor<?xi32> {hybrid.role = "ids"}, %labels: tensor<?xi32> {hybrid.role = "labels"},
                %weights: tensor<?xf32> {hybrid.role = "weights"})
    -> (tensor<?xf32> {hybrid.role = "loss"}) attributes {hybrid.entry = "loss"} {
  %x = hybrid.embed %ids, %table : (tensor<?xi32>, tensor<16x64xf32>) -> tensor<?x64xf32> loc(#embed)
  %u = hybrid.product %x, %up transpose_b : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32> loc(#l0)
  %s = hybrid.silu %u : tensor<?x64xf32> loc(#l0)
  %d = hybrid.product %s, %down transpose_b : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32> loc(#l0)
  %x1 = hybrid.add %x, %d : tensor<?x64xf32>, tensor<?x64xf32> loc(#l0)
  %logits = hybrid.product %x1, %table transpose_b : (tensor<?x64xf32>, tensor<16x64xf32>) -> tensor<?x16xf32> loc("head")
  %loss = hybrid.cross_entropy %logits, %labels, %weights : (tensor<?x16xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32> loc("loss")
  return %loss : tensor<?xf32>
}
}
