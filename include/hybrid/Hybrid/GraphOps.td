//===- GraphOps.td - mixers and the operations around them on tensors -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_GRAPH_OPS_TD
#define HYBRID_HYBRID_GRAPH_OPS_TD

include "hybrid/Hybrid/GraphMixerOps.td"
include "hybrid/Hybrid/GraphRowOps.td"

//===----------------------------------------------------------------------===//
// Embedding and products
//===----------------------------------------------------------------------===//

def Hybrid_EmbedOp : Graph_InferredDifferentiableOp<"embed"> {
  let summary = "rows of a table";
  let description = [{
    y_t = table[ids_t].

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %x = hybrid.embed %ids, %table : (tensor<?xi32>, tensor<256x64xf32>) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Graph_Ids:$ids, Graph_Weight:$table);
  let results = (outs Graph_Rows:$result);
  let assemblyFormat = "$ids `,` $table attr-dict `:` functional-type(operands, results)";
}

def Hybrid_EmbedGradOp : Graph_Op<"embed_grad"> {
  let summary = "adjoint of embed";
  let description = [{
    dtable[n] = Σ over the tokens with ids_t = n of dy_t, in token order.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %dtable = hybrid.embed_grad %ids, %dy : (tensor<?xi32>, tensor<?x64xf32>) -> tensor<256x64xf32>
    ```
  }];
  let arguments = (ins Graph_Ids:$ids, Graph_Rows:$dy);
  let results = (outs Graph_WeightF32:$dtable);
  let assemblyFormat = "$ids `,` $dy attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def Hybrid_ProductOp : Graph_DifferentiableOp<"product", [InferTypeOpAdaptorWithIsCompatible]> {
  let summary = "matrix product";
  let description = [{
    c = op(a) · op(b), op being the transpose where asked. With a weight
    `[out, in]`: x · Wᵀ is `product %x, %w transpose_b`, its gradients are
    `product %dy, %w` and `product %dy, %x transpose_a`, summed in token order.
    Accumulated in f32. The operands have one element type; the result has it
    too, or is f32.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %y = hybrid.product %x, %w transpose_b : (tensor<?x64xf32>, tensor<256x64xf32>) -> tensor<?x256xf32>

    %dw = hybrid.product %dy, %x transpose_a : (tensor<?x256xf32>, tensor<?x64xf32>) -> tensor<256x64xf32>

    %dwh = hybrid.product %dyh, %xh transpose_a : (tensor<?x256xbf16>, tensor<?x64xbf16>) -> tensor<256x64xf32>
    ```
  }];
  let arguments = (ins Graph_Matrix:$a, Graph_Matrix:$b,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Graph_Matrix:$result);
  let assemblyFormat = [{
    $a `,` $b (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)? attr-dict
    `:` functional-type(operands, results)
  }];
}

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

def Hybrid_CrossEntropyOp : Graph_InferredDifferentiableOp<"cross_entropy"> {
  let summary = "loss per token";
  let description = [{
    loss_t = weights_t · (ln Σ_n exp(logits_t[n]) - logits_t[labels_t]), and 0
    where the label is -100. Weights are 1 when the caller of the artefact gives
    none; no gradient flows to them.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %loss = hybrid.cross_entropy %logits, %labels, %weights : (tensor<?x256xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32>
    ```
  }];
  let arguments = (ins Graph_RowsF32:$logits, Graph_Ids:$labels, Graph_PerToken:$weights);
  let results = (outs Graph_PerToken:$loss);
  let assemblyFormat = [{
    $logits `,` $labels `,` $weights attr-dict `:` functional-type(operands, results)
  }];
}

def Hybrid_CrossEntropyGradOp
    : Graph_Op<"cross_entropy_grad", [AllShapesMatch<["logits", "dlogits"]>]> {
  let summary = "adjoint of cross_entropy";
  let description = [{
    dlogits_t = dloss_t · weights_t · (softmax(logits_t) - onehot(labels_t)), and
    0 where the label is -100. dloss is 1 when absent. The logits are f32; dlogits
    may be rounded to the type in which products read them.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %dlogits = hybrid.cross_entropy_grad %logits, %labels, %weights : (tensor<?x256xf32>, tensor<?xi32>, tensor<?xf32>) -> tensor<?x256xf32>
    ```
  }];
  let arguments = (ins Graph_RowsF32:$logits, Graph_Ids:$labels, Graph_PerToken:$weights,
                       Optional<Graph_PerToken>:$dloss);
  let results = (outs Graph_Rows:$dlogits);
  let assemblyFormat = [{
    $logits `,` $labels `,` $weights (`dloss` `(` $dloss^ `)`)? attr-dict
    `:` functional-type(operands, results)
  }];
}

def Hybrid_LastRowsOp : Graph_InferredOp<"last_rows"> {
  let summary = "the last row of each segment";
  let description = [{
    y_s = x_{end_s - 1}; a row of zeros for an empty segment.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %y = hybrid.last_rows %x, %segments : (tensor<?x64xf32>, !hybrid.segments) -> tensor<?x64xf32, #hybrid.per_segment>
    ```
  }];
  let arguments = (ins Graph_Rows:$x, Hybrid_Segments:$segments);
  let results = (outs Graph_Rows:$result);
  let assemblyFormat = "$x `,` $segments attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// After fuse
//===----------------------------------------------------------------------===//

def Hybrid_RowwiseOp
    : Graph_Op<"rowwise", [IsolatedFromAbove, RecursiveMemoryEffects,
                           SingleBlockImplicitTerminator<"::hybrid::YieldOp">]> {
  let summary = "row-wise operations that run as one";
  let description = [{
    Means what its body means: the block's arguments are the operands, the yielded
    values the results. Every operation of the body computes a row from the same
    row (`RowwiseOpInterface`), so one kernel loads each operand once and stores
    each result once. Made by `hybrid-fuse-rowwise`.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %0:2 = hybrid.rowwise (%a = %x : tensor<?x64xf32>, %b = %w : tensor<64xf32>)
        -> (tensor<?x64xf32>, tensor<?x64xf32>) {
      %n = hybrid.normalize rms %a epsilon 1.000000e-05 : tensor<?x64xf32>
      %m = hybrid.mul %n, %b : tensor<?x64xf32>, tensor<64xf32>
      hybrid.yield %n, %m : tensor<?x64xf32>, tensor<?x64xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$inputs);
  let results = (outs Variadic<Graph_AnyTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

#endif // HYBRID_HYBRID_GRAPH_OPS_TD
