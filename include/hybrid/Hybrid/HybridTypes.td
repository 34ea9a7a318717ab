//===- HybridTypes.td - types of the hybrid dialect -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_TYPES_TD
#define HYBRID_HYBRID_TYPES_TD

include "mlir/IR/AttrTypeBase.td"
include "hybrid/Hybrid/HybridDialect.td"

def Hybrid_Segments : TypeDef<Hybrid_Dialect, "Segments"> {
  let mnemonic = "segments";
  let summary = "how a packed stream of tokens is cut into segments";
  let description = [{
    The segment table of a call: per segment its begin and end in the stream, its
    state slot and the position of its first token. In memory it is two arrays,
    `segment_table : i32 [segments, 4]` and `token_segment : i32 [tokens]`.

    Example, from `test/Hybrid/Graph/ops.mlir`: `%segments: !hybrid.segments`
  }];
}

#endif // HYBRID_HYBRID_TYPES_TD
