//===- SpecSyntax.cpp - syntax of spec and stack operations -*- C++ -*-===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SpecSyntax.h"

#include <charconv>
#include <cmath>

using namespace mlir;
using namespace hybrid;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

ParseResult hybrid::parseNumber(OpAsmParser &parser, FloatAttr &number) {
  bool negative = succeeded(parser.parseOptionalMinus());
  double value;
  int64_t whole;
  OptionalParseResult asInteger = parser.parseOptionalInteger(whole);
  if (asInteger.has_value()) {
    if (failed(*asInteger))
      return failure();
    // The lexer takes 1e-5 for the number 1 and a name.
    StringRef exponent;
    SMLoc place = parser.getCurrentLocation();
    if (succeeded(parser.parseOptionalKeyword(&exponent)))
      return parser.emitError(place)
             << "'" << exponent << "' follows the number " << whole
             << "; write an exponent behind a fraction, as in 1.0e-5";
    value = static_cast<double>(whole);
  } else if (parser.parseFloat(value)) {
    return failure();
  }
  number = parser.getBuilder().getF64FloatAttr(negative ? -value : value);
  return success();
}

std::string hybrid::formatNumber(double number) {
  if (number == std::trunc(number) && std::abs(number) < 1e15)
    return std::to_string(static_cast<int64_t>(number));
  char text[32];
  auto *end = std::to_chars(text, text + sizeof(text), number).ptr;
  auto [mantissa, exponent] = StringRef(text, end - text).split('e');
  if (exponent.empty())
    return mantissa.str();
  // The lexer knows an exponent only behind a fraction.
  StringRef fraction = mantissa.contains('.') ? "" : ".0";
  return (mantissa + fraction + "e" + exponent).str();
}

void hybrid::printNumber(OpAsmPrinter &printer, Operation *, FloatAttr number) {
  printer << formatNumber(number.getValueAsDouble());
}

//===----------------------------------------------------------------------===//
// Keyword arguments
//===----------------------------------------------------------------------===//

namespace {

/// Reads `name =` when a comma follows; sets `name` to null when none does.
ParseResult parseArgument(OpAsmParser &parser, StringRef &name, SMLoc &loc) {
  name = StringRef();
  if (failed(parser.parseOptionalComma()))
    return success();
  loc = parser.getCurrentLocation();
  return failure(parser.parseKeyword(&name) || parser.parseEqual());
}

} // namespace

ParseResult hybrid::parsePosition(OpAsmParser &parser, PositionKindAttr &kind,
                                  FloatAttr &base, FloatAttr &dynamicNtk) {
  if (parseWord(parser, kind))
    return failure();
  StringRef name;
  SMLoc loc;
  while (true) {
    if (parseArgument(parser, name, loc))
      return failure();
    if (name.empty())
      return success();
    if (name != "base" && name != "dynamic_ntk")
      return parser.emitError(loc) << "unknown argument '" << name
                                   << "' of a position; write base = x or "
                                      "dynamic_ntk = x";
    FloatAttr &argument = name == "base" ? base : dynamicNtk;
    if (argument)
      return parser.emitError(loc) << "'" << name << "' is given twice";
    if (parseNumber(parser, argument))
      return failure();
  }
}

void hybrid::printPosition(OpAsmPrinter &printer, Operation *op,
                           PositionKindAttr kind, FloatAttr base,
                           FloatAttr dynamicNtk) {
  printWord(printer, op, kind);
  if (base) {
    printer << ", base = ";
    printNumber(printer, op, base);
  }
  if (dynamicNtk) {
    printer << ", dynamic_ntk = ";
    printNumber(printer, op, dynamicNtk);
  }
}

ParseResult hybrid::parseLogitScale(OpAsmParser &parser,
                                    LogitScaleKindAttr &kind, FloatAttr &factor,
                                    IntegerAttr &trained) {
  if (parseWord(parser, kind))
    return failure();
  StringRef name;
  SMLoc loc;
  if (parseArgument(parser, name, loc))
    return failure();
  if (kind.getValue() == LogitScaleKind::constant) {
    if (name != "factor")
      return parser.emitError(parser.getCurrentLocation())
             << "a constant logit scale needs its factor; write "
                "logit_scale(constant, factor = x)";
    return parseNumber(parser, factor);
  }
  if (name.empty())
    return success();
  if (name != "trained")
    return parser.emitError(loc)
           << "unknown argument '" << name
           << "' of log_n; write logit_scale(log_n, trained = n)";
  return parser.parseAttribute(trained, parser.getBuilder().getI64Type());
}

void hybrid::printLogitScale(OpAsmPrinter &printer, Operation *op,
                             LogitScaleKindAttr kind, FloatAttr factor,
                             IntegerAttr trained) {
  printWord(printer, op, kind);
  if (factor) {
    printer << ", factor = ";
    printNumber(printer, op, factor);
  }
  if (trained)
    printer << ", trained = " << trained.getInt();
}

ParseResult hybrid::parseConv(OpAsmParser &parser, IntegerAttr &width) {
  Builder &builder = parser.getBuilder();
  if (succeeded(parser.parseOptionalKeyword("off"))) {
    width = builder.getI64IntegerAttr(0);
    return success();
  }
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseAttribute(width, builder.getI64Type()))
    return failure();
  if (width.getInt() == 0)
    return parser.emitError(loc)
           << "convolution width 0 means nothing; write conv(off) for none";
  return success();
}

void hybrid::printConv(OpAsmPrinter &printer, Operation *, IntegerAttr width) {
  if (width.getInt() == 0)
    printer << "off";
  else
    printer << width.getInt();
}

//===----------------------------------------------------------------------===//
// End of clauses
//===----------------------------------------------------------------------===//

// The parser has no look ahead, but a location is a place in the text, and the
// text ends with a zero. The name of an operation of a spec has a dot.
ParseResult hybrid::parseEndOfClauses(OpAsmParser &parser, IntegerAttr) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef word = StringRef(loc.getPointer()).take_while([](char c) {
    return llvm::isAlnum(c) || c == '_' || c == '.';
  });
  if (word.empty() || !llvm::isAlpha(word.front()) || word.contains('.') ||
      word == "loc")
    return success();
  return parser.emitError(loc) << "has no clause '" << word
                               << "'; docs/spec-language.md lists what it has";
}
