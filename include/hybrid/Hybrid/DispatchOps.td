//===- DispatchOps.td - launches of tile programs -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_DISPATCH_OPS_TD
#define HYBRID_HYBRID_DISPATCH_OPS_TD

include "hybrid/Hybrid/HybridAttrs.td"
include "hybrid/Hybrid/HybridTypes.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

def Hybrid_DispatchOp : Hybrid_Op<"dispatch",
    [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one launch of a tile program";
  let description = [{
    Runs `program` over its grid. The program's arguments are one view per
    input, in order, then one view per result, with two rules:

    - an input of type `!hybrid.segments` is two views, the segment table and
      the segment of each token;
    - a result that is tied to an input overwrites it in place and has no view
      of its own: the input's view serves for both. `ties` lists pairs of
      (result, input), so `ties = [0, 2]` ties result 0 to input 2.

    A tied input must not be read after the dispatch; phase `plan` refuses a
    function where it is. Results that nothing reads are workspaces.

    `product` is there when the dispatch computes a matrix product and nothing
    else (`#hybrid.plain_product`).

    Example, from `test/Hybrid/Dispatch/ops.mlir`:

    ```mlir
    %c = hybrid.dispatch @product(%a, %b)
        : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>

    %w1 = hybrid.dispatch @weight_gradient(%dy, %x, %w0) ties = [0, 2]
        : (tensor<?x32xf32>, tensor<?x64xf32>, tensor<32x64xf32>)
          -> tensor<32x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$program, Variadic<AnyType>:$inputs,
                       OptionalAttr<DenseI64ArrayAttr>:$ties,
                       OptionalAttr<Hybrid_PlainProductAttr>:$product);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $program `(` $inputs `)` (`ties` `=` $ties^)?
    (`product` `(` qualified($product)^ `)`)? attr-dict
    `:` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The input that `result` overwrites, if it is tied to one.
    std::optional<unsigned> getTiedInput(unsigned result);
    /// Of a plain product: the dispatch whose inputs 0 and 1 are its operands,
    /// this one or the one that computes its parts.
    DispatchOp getFactors();
  }];
}

def Hybrid_AlternativesOp : Hybrid_Op<"alternatives",
    [RecursiveMemoryEffects, SingleBlock, NoRegionArguments]> {
  let summary = "launch sequences of which the first whose guard holds runs";
  let description = [{
    Holds one region per algorithm. Region i runs when `guards[i]` holds and no
    earlier guard does; the last region has no guard and runs otherwise. A guard
    is an integer set of one inequality over the six symbols of a call (tokens,
    segments, longest, slots, context, depth), so that it can be tested on the
    host before anything runs. Every region yields the same types.

    Example, from `test/Hybrid/Dispatch/ops.mlir`:

    ```mlir
    #few = affine_set<()[tokens, segments, longest, slots, context, depth]
                      : (4 - tokens >= 0)>

    %c = hybrid.alternatives [#few] -> tensor<?x32xf32> {
      %0 = hybrid.dispatch @product_rows(%a, %b)
          : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
      hybrid.yield %0 : tensor<?x32xf32>
    }, {
      %0 = hybrid.dispatch @product(%a, %b)
          : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
      hybrid.yield %0 : tensor<?x32xf32>
    }
    ```
  }];
  let arguments = (ins ArrayAttr:$guards);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region VariadicRegion<SizedRegion<1>>:$algorithms);
  let assemblyFormat = "$guards attr-dict `->` type($outputs) $algorithms";
  let hasVerifier = 1;
}

def Hybrid_PiecesOp : Hybrid_Op<"pieces",
    [AttrSizedOperandSegments, RecursiveMemoryEffects, SingleBlock]> {
  let summary = "operations that run for some rows of the stream at a time";
  let description = [{
    Cuts the rows of the stream into pieces of `rows`, the last one shorter, and
    runs the body for one after the other, so that what the body makes for
    itself has the size of a piece. The block's arguments are

    - one per stream, a tensor per token: the rows of the piece;
    - one per sum, a tensor without tokens: the operand for the first piece,
      then what the piece before yielded.

    Inside, a leading size `?` and the symbol `tokens` are the rows of the piece.
    Other values from outside are whole, so they have static shapes. The body
    yields the piece's rows of the first results, which are put together, and
    then the sums. Without tokens the sums are the operands.

    Example, from `test/Hybrid/Dispatch/ops.mlir`:

    ```mlir
    %y, %dw = hybrid.pieces of 256 rows(%x, %dy) sums(%dw0)
        : (tensor<?x64xf32>, tensor<?x32xf32>, tensor<32x64xf32>)
          -> (tensor<?x32xf32>, tensor<32x64xf32>) {
    ^bb0(%xp: tensor<?x64xf32>, %dyp: tensor<?x32xf32>, %sum: tensor<32x64xf32>):
      %0 = hybrid.dispatch @product(%xp, %w)
          : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
      %1 = hybrid.dispatch @weight_gradient(%dyp, %xp, %sum) ties = [0, 2]
          : (tensor<?x32xf32>, tensor<?x64xf32>, tensor<32x64xf32>)
            -> tensor<32x64xf32>
      hybrid.yield %0, %1 : tensor<?x32xf32>, tensor<32x64xf32>
    }
    ```
  }];
  let arguments = (ins I64Attr:$rows, Variadic<AnyRankedTensor>:$streams,
                       Variadic<AnyRankedTensor>:$sums);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `of` $rows `rows` `(` $streams `)` (`sums` `(` $sums^ `)`)? attr-dict
    `:` functional-type(operands, results) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    mlir::Block &getBlock() { return getBody().front(); }
    /// The operand that an argument of the block stands for.
    mlir::Value getOperandOf(mlir::BlockArgument argument) {
      return getOperand(argument.getArgNumber());
    }
    mlir::Value getYielded(mlir::OpResult result);
    bool isSum(mlir::OpResult result) {
      return result.getResultNumber() >= getNumResults() - getSums().size();
    }
  }];
}

def Hybrid_YieldOp : Hybrid_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "ends a region of the hybrid dialect";
  let description = [{
    Gives the operands to the op around the region: the algorithms of
    `hybrid.alternatives`, the bodies of `hybrid.pieces` and `hybrid.rowwise`.

    Example, from `test/Hybrid/Dispatch/ops.mlir`:

    ```mlir
    hybrid.yield %0 : tensor<?x32xf32>
    ```
  }];
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{ /* empty region under construction */ }]>];
}

#endif // HYBRID_HYBRID_DISPATCH_OPS_TD
