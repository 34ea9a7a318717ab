//===- MixerInterfaces.td - what every mixer of a spec can say -*- tablegen -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_HYBRID_MIXER_INTERFACES_TD
#define HYBRID_HYBRID_MIXER_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Hybrid_MixerInterface : OpInterface<"MixerInterface"> {
  let cppNamespace = "::hybrid";
  let description = [{
    A group of heads that moves information between tokens. Passes ask through
    this interface and never for a mixer by name.
  }];
  let methods = [
    InterfaceMethod<"Number of query heads.", "int64_t", "getHeads">,
    InterfaceMethod<"Channels of a query and a key per head.", "int64_t",
                    "getHeadDim">,
    InterfaceMethod<"Channels of a value, and so of the output, per head.",
                    "std::optional<int64_t>", "getValueDim", (ins), [{}],
                    [{ return std::nullopt; }]>
  ];
  let extraClassDeclaration = [{
    int64_t getValueDimOrDefault() {
      return getValueDim().value_or(getHeadDim());
    }
  }];
}

def Hybrid_RecurrentMixerInterface
    : OpInterface<"RecurrentMixerInterface", [Hybrid_MixerInterface]> {
  let cppNamespace = "::hybrid";
  let description = [{
    A mixer of the recurrence family: its mnemonic names a row of the mixer
    table (`Mixers.h`), and each answer here replaces a default of that row.
    An operation has only the attributes that its row gives a meaning.
  }];
  let verify = [{ return ::hybrid::verifyRecurrentMixer($_op); }];
  let methods = [
    InterfaceMethod<"Changes the number of heads.", "void", "setHeads",
                    (ins "int64_t":$heads)>,
    InterfaceMethod<"Changes the key channels per head.", "void", "setHeadDim",
                    (ins "int64_t":$dim)>,
    InterfaceMethod<"Changes the value channels per head.", "void",
                    "setValueDim", (ins "std::optional<int64_t>":$dim)>,
    InterfaceMethod<"Width of the short convolution, 0 for none.",
                    "std::optional<int64_t>", "getConv", (ins), [{}],
                    [{ return std::nullopt; }]>,
    InterfaceMethod<"What happens before the output projection.",
                    "std::optional<::hybrid::OutputStage>", "getOutput", (ins),
                    [{}], [{ return std::nullopt; }]>,
    InterfaceMethod<"Divisor of the log decay.", "std::optional<double>",
                    "getGateNormalizer", (ins), [{}],
                    [{ return std::nullopt; }]>,
    InterfaceMethod<"Rank of the gate's first projection.",
                    "std::optional<int64_t>", "getGateRank", (ins), [{}],
                    [{ return std::nullopt; }]>,
    InterfaceMethod<"First value of the gate's bias.",
                    "std::optional<double>", "getGateBias", (ins), [{}],
                    [{ return std::nullopt; }]>,
    InterfaceMethod<"Whether the write strength reaches 2.", "bool",
                    "getNegativeEigenvalues", (ins), [{}],
                    [{ return false; }]>
  ];
}

#endif // HYBRID_HYBRID_MIXER_INTERFACES_TD
