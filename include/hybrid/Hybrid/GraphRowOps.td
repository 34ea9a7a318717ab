//===- GraphRowOps.td - operations on the rows of a tensor -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_GRAPH_ROW_OPS_TD
#define HYBRID_HYBRID_GRAPH_ROW_OPS_TD

include "hybrid/Hybrid/GraphBase.td"

//===----------------------------------------------------------------------===//
// Elementwise. All are f32, and so are the norms and positions below.
//===----------------------------------------------------------------------===//

class Graph_BinaryOp<string mnemonic>
    : Graph_DifferentiableOp<mnemonic,
          [Hybrid_RowwiseOpInterface, AllTypesMatch<["a", "result"]>]> {
  let arguments = (ins Graph_Tensor:$a, Graph_Tensor:$b);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b)";
  let hasVerifier = 1;
  // Every binary operation broadcasts alike.
  code broadcast = [{
    `b` is stretched to the shape of `a`: its dimensions are matched with the
    last dimensions of `a`, each equal or 1. So a static parameter serves every
    token, and `[tokens, heads, 1]` serves every channel of a head.
  }];
}

def Hybrid_AddOp : Graph_BinaryOp<"add"> {
  let summary = "a + b";
  let description = broadcast # [{

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.add %x, %per_head : tensor<?x4x64xf32>, tensor<?x4x1xf32>
    ```
  }];
}

def Hybrid_SubOp : Graph_BinaryOp<"sub"> {
  let summary = "a - b";
  let description = broadcast # [{

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.sub %x, %y : tensor<?x4x64xf32>, tensor<?x4x64xf32>
    ```
  }];
}

def Hybrid_MulOp : Graph_BinaryOp<"mul"> {
  let summary = "a * b";
  let description = broadcast # [{

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.mul %x, %weight : tensor<?x4x64xf32>, tensor<64xf32>
    ```
  }];
}

class Graph_UnaryOp<string mnemonic, string equation, string computation = "">
    : Graph_DifferentiableOp<mnemonic, [Hybrid_RowwiseOpInterface, SameOperandsAndResultType]> {
  let summary = equation;
  let description = computation # [{
    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %y = hybrid.}] # mnemonic # [{ %x : tensor<?x4x64xf32>
    ```
  }];
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Hybrid_SiluOp : Graph_UnaryOp<"silu", "x · σ(x)">;
def Hybrid_SigmoidOp : Graph_UnaryOp<"sigmoid", "σ(x) = 1 / (1 + exp(-x))">;
def Hybrid_LogSigmoidOp : Graph_UnaryOp<"log_sigmoid", "ln σ(x)", [{
    Computed as min(x, 0) - ln(1 + exp(-|x|)), so that no exponential of a
    positive number is formed.

}]>;
def Hybrid_SoftplusOp : Graph_UnaryOp<"softplus", "ln(1 + exp(x))", [{
    Computed as max(x, 0) + ln(1 + exp(-|x|)), so that no exponential of a
    positive number is formed.

}]>;
def Hybrid_ExpOp : Graph_UnaryOp<"exp", "exp(x)">;
def Hybrid_NegOp : Graph_UnaryOp<"neg", "-x">;

def Hybrid_ScaleOp
    : Graph_DifferentiableOp<"scale", [Hybrid_RowwiseOpInterface, SameOperandsAndResultType]> {
  let summary = "x times a constant";
  let description = [{
    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.scale %x by 6.250000e-02 : tensor<?x4x64xf32>
    ```
  }];
  let arguments = (ins Graph_Tensor:$x, F64Attr:$factor);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x `by` $factor attr-dict `:` type($x)";
}

class Graph_UnaryGradOp<string mnemonic, string first, string equation>
    : Graph_Op<mnemonic, [Hybrid_RowwiseOpInterface, SameOperandsAndResultType]> {
  let summary = "dx = " # equation;
  let description = [{
    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %dx = hybrid.}] # mnemonic # " %" # first # [{, %dy : tensor<?x4x64xf32>
    ```
  }];
  let arguments = !con(!dag(ins, [Graph_Tensor], [first]), (ins Graph_Tensor:$dy));
  let results = (outs Graph_Tensor:$dx);
  let assemblyFormat = "$" # first # " `,` $dy attr-dict `:` type($dy)";
}

def Hybrid_SiluGradOp : Graph_UnaryGradOp<"silu_grad", "x", "dy · σ(x) · (1 + x · (1 - σ(x)))">;
def Hybrid_SigmoidGradOp : Graph_UnaryGradOp<"sigmoid_grad", "y", "dy · y · (1 - y), where y = σ(x)">;
def Hybrid_LogSigmoidGradOp : Graph_UnaryGradOp<"log_sigmoid_grad", "x", "dy · σ(-x)">;
def Hybrid_SoftplusGradOp : Graph_UnaryGradOp<"softplus_grad", "x", "dy · σ(x)">;

def Hybrid_FillOp : Graph_Op<"fill", [Hybrid_RowwiseOpInterface]> {
  let summary = "a tensor that holds one value everywhere";
  let description = [{
    The dynamic sizes come from the symbols, as for every graph tensor.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.fill 1.000000e+00 : tensor<?x4x64xf32>
    ```
  }];
  let arguments = (ins F64Attr:$value);
  let results = (outs Graph_AnyTensor:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
}

def Hybrid_DropoutOp
    : Graph_DifferentiableOp<"dropout",
          [Hybrid_RowwiseOpInterface, AllTypesMatch<["x", "result"]>]> {
  let summary = "elements left out at random, the others scaled up";
  let description = [{
    y = x · m with m = 0 where an element is left out, else 1 / (1 - rate), so
    that the mean over masks is x. Whether element j of row t is left out
    depends on the key of the call and its place alone: in 32-bit integers that
    wrap, with G = 0x9E3779B9 and t, j counted from 0 (j in row-major order),

    ```
    h(t, j) = mix(mix(key ⊕ t·G) ⊕ j·G)
    mix(x):   x ⊕= x >> 16;  x *= 0x7FEB352D;  x ⊕= x >> 15;
              x *= 0x846CA68B;  x ⊕= x >> 16
    ```

    and it is where h(t, j), read as a signed number, is below
    rate · 2³² − 2³¹.

    The mask is never stored: what is computed again, and the adjoint, which is
    the same operation on the gradient, make the same one. The constants of mix
    are those of the hash "lowbias32" (C. Wellons, Hash Prospector, 2018).

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.dropout %x, %key rate 1.000000e-01 : tensor<?x4x64xf32>
    ```
  }];
  let arguments = (ins Graph_Tensor:$x, Graph_RandomKey:$key, F64Attr:$rate);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x `,` $key `rate` $rate attr-dict `:` type($x)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What kept elements are multiplied by.
    double getScale() { return 1.0 / (1.0 - getRate().convertToDouble()); }
  }];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Hybrid_CastOp
    : Graph_DifferentiableOp<"cast",
          [DeclareOpInterfaceMethods<Hybrid_RowwiseOpInterface, ["isRowwise"]>,
           AllShapesMatch<["x", "result"]>]> {
  let summary = "the same numbers in another type";
  let description = [{
    To a narrower type each number is rounded to nearest even; to f32 it keeps
    its value. Row-wise operations are f32, so casts stand at the edges of their
    regions. A cast of a parameter is the parameter's copy in the compute type,
    which `update` keeps: it is read, not computed.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.cast %x : tensor<?x64xbf16> to tensor<?x64xf32>
    ```
  }];
  let arguments = (ins Graph_AnyTensor:$x);
  let results = (outs Graph_AnyTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `to` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether x is a parameter of the entry, of which there is a copy in the
    /// result's type.
    bool isParameterCopy();
  }];
}

//===----------------------------------------------------------------------===//
// Norms and positions
//===----------------------------------------------------------------------===//

def Hybrid_NormalizeOp
    : Graph_DifferentiableOp<"normalize", [Hybrid_RowwiseOpInterface, SameOperandsAndResultType]> {
  let summary = "x divided by its size over the last dimension";
  let description = [{
    rms: y = x · (mean(x²) + epsilon)^(-1/2); l2: y = x · (Σ x² + epsilon)^(-1/2).
    The sums run over the last dimension, so `[tokens, heads, dim]` is a norm per
    head. epsilon stands inside the root: the gradient of a zero row is finite.
    Weights are a `hybrid.mul`.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.normalize rms %x epsilon 1.000000e-06 : tensor<?x4x64xf32>
    ```
  }];
  let arguments = (ins Hybrid_NormKindAttr:$kind, Graph_Tensor:$x, F64Attr:$epsilon);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "custom<Word>($kind) $x `epsilon` $epsilon attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Hybrid_NormalizeGradOp
    : Graph_Op<"normalize_grad", [Hybrid_RowwiseOpInterface, SameOperandsAndResultType]> {
  let summary = "adjoint of normalize";
  let description = [{
    With r the inverse size and y = x · r: rms dx = r (dy - y · mean(y · dy));
    l2 dx = r (dy - y · Σ(y · dy)).

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %dx = hybrid.normalize_grad l2 %x, %dy epsilon 1.000000e-06 : tensor<?x4x64xf32>
    ```
  }];
  let arguments = (ins Hybrid_NormKindAttr:$kind, Graph_Tensor:$x, Graph_Tensor:$dy,
                       F64Attr:$epsilon);
  let results = (outs Graph_Tensor:$dx);
  let assemblyFormat = "custom<Word>($kind) $x `,` $dy `epsilon` $epsilon attr-dict `:` type($x)";
  let hasVerifier = 1;
}

def Hybrid_RotaryOp
    : Graph_DifferentiableOp<"rotary", [Hybrid_RowwiseOpInterface, AllTypesMatch<["x", "result"]>]> {
  let summary = "rotary position embedding, half-split";
  let description = [{
    With d = rotary_dim and i < d/2, channels i and i + d/2 of every head are
    rotated by the angle p · base^(-2i/d), where p is the row's position:

    y_i = x_i cos - x_{i+d/2} sin;  y_{i+d/2} = x_{i+d/2} cos + x_i sin.

    Channels from d on pass through. `inverse` rotates by the negated angle,
    which is the adjoint. The angle is formed in f32 or wider.

    Dynamic NTK (`ntk f original n`): the base of a segment becomes
    base · (f · T/n - (f - 1))^(d/(d-2)), T = max(n, positions of the segment up
    to the end of this call). Up to the original length nothing changes. Beyond
    it a cached key keeps the base of the call it was rotated in, as in other
    libraries, so that there splitting a call changes values.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.rotary %x, %segments base 1.000000e+04 dim 32 : tensor<?x4x64xf32>
    %2 = hybrid.rotary %1, %segments base 1.000000e+04 dim 64 ntk 2.000000e+00 original 2048 inverse : tensor<?x4x64xf32>
    ```
  }];
  let arguments = (ins Graph_HeadsF32:$x, Hybrid_Segments:$segments, F64Attr:$base,
                       I64Attr:$rotary_dim, OptionalAttr<F64Attr>:$ntk_factor,
                       OptionalAttr<I64Attr>:$original_length, UnitAttr:$inverse);
  let results = (outs Graph_HeadsF32:$result);
  let assemblyFormat = [{
    $x `,` $segments `base` $base `dim` $rotary_dim
    (`ntk` $ntk_factor^ `original` $original_length)? (`inverse` $inverse^)?
    attr-dict `:` type($x)
  }];
  let hasVerifier = 1;
}

def Hybrid_LogNScaleOp
    : Graph_DifferentiableOp<"log_n_scale",
          [Hybrid_RowwiseOpInterface, AllTypesMatch<["x", "result"]>]> {
  let summary = "rows times max(1, ln(position + 1) / ln(trained))";
  let description = [{
    Applied to queries it multiplies their logits; rows up to the trained length
    stay as they are. Linear in x, so it is its own adjoint.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.log_n_scale %q, %segments trained 4096 : tensor<?x4x64xf32>
    ```
  }];
  let arguments = (ins Graph_Tensor:$x, Hybrid_Segments:$segments, I64Attr:$trained);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x `,` $segments `trained` $trained attr-dict `:` type($x)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Sums and shapes
//===----------------------------------------------------------------------===//

def Hybrid_ReduceTokensOp : Graph_Op<"reduce_tokens"> {
  let summary = "sum over the leading dimensions, tokens in ascending order";
  let description = [{
    The shape of the result is the end of the shape of x; everything in front of
    it is summed. The gradient of a parameter that a `hybrid.add` or
    `hybrid.mul` broadcast over tokens, or over tokens and heads.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.reduce_tokens %x : tensor<?x4x64xf32> -> tensor<64xf32>
    ```
  }];
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Hybrid_ReduceDimOp : Graph_InferredOp<"reduce_dim", [Hybrid_RowwiseOpInterface]> {
  let summary = "sum over the last dimension, which becomes 1";
  let description = [{
    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.reduce_dim %x : tensor<?x4x64xf32> -> tensor<?x4x1xf32>
    ```
  }];
  let arguments = (ins Graph_Tensor:$x);
  let results = (outs Graph_Tensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
}

def Hybrid_ReshapeOp
    : Graph_DifferentiableOp<"reshape",
          [DeclareOpInterfaceMethods<Hybrid_RowwiseOpInterface, ["isRowwise"]>]> {
  let summary = "the same elements in row-major order under another shape";
  let description = [{
    A dynamic dimension stays the leading one; the static sizes after it have the
    same product.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.reshape %x : tensor<?x256xf32> -> tensor<?x4x64xf32>
    ```
  }];
  let arguments = (ins Graph_AnyTensor:$x);
  let results = (outs Graph_AnyTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($x) `->` type($result)";
  let hasVerifier = 1;
}

def Hybrid_SliceOp
    : Graph_InferredDifferentiableOp<"slice",
          [DeclareOpInterfaceMethods<Hybrid_RowwiseOpInterface, ["isRowwise"]>]> {
  let summary = "`size` indices of one static dimension from `offset` on";
  let description = [{
    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.slice %x dim 1 from 1 size 2 : tensor<?x4x64xf32> -> tensor<?x2x64xf32>
    ```
  }];
  let arguments = (ins Graph_AnyTensor:$x, I64Attr:$dim, I64Attr:$offset, I64Attr:$size);
  let results = (outs Graph_AnyTensor:$result);
  let assemblyFormat = [{
    $x `dim` $dim `from` $offset `size` $size attr-dict `:` type($x) `->` type($result)
  }];
}

def Hybrid_ConcatOp
    : Graph_InferredDifferentiableOp<"concat",
          [DeclareOpInterfaceMethods<Hybrid_RowwiseOpInterface, ["isRowwise"]>]> {
  let summary = "operands one after another along one static dimension";
  let description = [{
    The plan lets the producers write into the result where it can.

    Example, from `test/Hybrid/Graph/ops.mlir`:

    ```mlir
    %1 = hybrid.concat %a, %b dim 1 : (tensor<?x4x64xf32>, tensor<?x2x64xf32>) -> tensor<?x6x64xf32>
    ```
  }];
  let arguments = (ins Variadic<Graph_AnyTensor>:$parts, I64Attr:$dim);
  let results = (outs Graph_AnyTensor:$result);
  let assemblyFormat = "$parts `dim` $dim attr-dict `:` functional-type(operands, results)";
}

#endif // HYBRID_HYBRID_GRAPH_ROW_OPS_TD
