//===- Nest.cpp - one loop nest for a fused elementwise expression -------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Nest.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::cpu;

//===----------------------------------------------------------------------===//
// Building the graph
//===----------------------------------------------------------------------===//

Nest::Nest(CodeBuilder &b, ArrayRef<int64_t> shape) : b(b) {
  for (int64_t size : shape)
    dims.push_back({size});
}

Nest::Map Nest::identity(int64_t rank) {
  Map map;
  for (int64_t dim = 0; dim < rank; ++dim)
    map.push_back({unsigned(dim), 0});
  return map;
}

Nest::Node Nest::append(NodeInfo node) {
  nodes.push_back(std::move(node));
  return nodes.size() - 1;
}

Nest::Node Nest::read(const Place &place, const Map &map) {
  NodeInfo node{NodeInfo::Kind::Memory, place.element};
  node.base = place.base;
  node.offset = place.offset;
  node.strides.assign(dims.size(), Int(0));
  for (auto [dim, stride] : llvm::zip_equal(map, place.strides)) {
    node.offset = b.add(node.offset, b.mul(stride, dim.start));
    if (dim.along)
      node.strides[*dim.along] = stride;
  }
  return append(std::move(node));
}

Nest::Node Nest::scalar(Value value) {
  NodeInfo node{NodeInfo::Kind::Scalar, value.getType()};
  node.value = value;
  return append(std::move(node));
}

Nest::Node Nest::iota(const Dim &dim, Type type) {
  NodeInfo node{NodeInfo::Kind::Iota, type};
  node.offset = dim.start;
  node.strides.assign(dims.size(), Int(0));
  if (dim.along)
    node.strides[*dim.along] = 1;
  return append(std::move(node));
}

Nest::Node Nest::compute(Operation *op, ArrayRef<Node> operands) {
  NodeInfo node{NodeInfo::Kind::Compute,
                getElementTypeOrSelf(op->getResult(0).getType())};
  node.op = op;
  node.operands.assign(operands.begin(), operands.end());
  return append(std::move(node));
}

std::optional<Nest::Node> Nest::lookup(Value tile, const Map &map) const {
  for (const auto &[knownTile, knownMap, node] : known)
    if (knownTile == tile && knownMap == map)
      return node;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void Nest::setTarget(const Place &to) {
  target = read(to, identity(dims.size()));
}

void Nest::emitStore(Node node, const Place &to) {
  root = node;
  sink = Sink::Store;
  setTarget(to);
  emit();
}

void Nest::emitAccumulate(Node node, const Place &to, Value firstTurn) {
  root = node;
  sink = Sink::Accumulate;
  first = firstTurn;
  setTarget(to);
  emit();
}

void Nest::emitReduce(Node node, tile::ReduceKind kind, unsigned dim,
                      const Place &to) {
  root = node;
  sink = Sink::Reduce;
  reduceKind = kind;
  reduceDim = dim;
  setTarget(to);
  nodes[target].strides[dim] = 0;
  emit();
}

//===----------------------------------------------------------------------===//
// The shape of the nest
//===----------------------------------------------------------------------===//

void Nest::eraseDim(unsigned dim) {
  dims.erase(dims.begin() + dim);
  for (NodeInfo &node : nodes)
    if (isAccess(node))
      node.strides.erase(node.strides.begin() + dim);
  if (reduceDim > dim)
    --reduceDim;
}

bool Nest::stepsEvenly(unsigned outer) const {
  if (dims[outer].limit || dims[outer + 1].limit)
    return false;
  if (sink == Sink::Reduce && (reduceDim == outer || reduceDim == outer + 1))
    return false;
  int64_t innerSize = dims[outer + 1].size;
  return llvm::all_of(nodes, [&](const NodeInfo &node) {
    if (!isAccess(node))
      return true;
    const Int &inner = node.strides[outer + 1];
    return inner.isKnown() &&
           node.strides[outer].is(inner.getKnown() * innerSize);
  });
}

void Nest::simplifyDims() {
  for (int dim = dims.size() - 1; dim >= 0; --dim) {
    if (dims[dim].size != 1 || dims[dim].limit)
      continue;
    // The sum or maximum of one element is that element.
    if (sink == Sink::Reduce && reduceDim == unsigned(dim))
      sink = Sink::Store;
    eraseDim(dim);
  }
  for (int outer = int(dims.size()) - 2; outer >= 0; --outer) {
    if (!stepsEvenly(outer))
      continue;
    dims[outer + 1].size *= dims[outer].size;
    eraseDim(outer);
  }
}

bool Nest::runsInVectors(unsigned dim) const {
  for (const NodeInfo &node : nodes)
    if (node.kind == NodeInfo::Kind::Memory && !node.strides[dim].is(0) &&
        !node.strides[dim].is(1))
      return false;
  return (sink == Sink::Reduce && reduceDim == dim) ||
         nodes[target].strides[dim].is(1);
}

void Nest::orderLoops() {
  if (!dims.empty() && runsInVectors(dims.size() - 1))
    vectorDim = dims.size() - 1;
  for (unsigned dim = 0; dim < dims.size(); ++dim)
    if (dim != vectorDim && !(sink == Sink::Reduce && dim == reduceDim))
      order.push_back(dim);
  if (vectorDim)
    order.push_back(*vectorDim);
  if (sink == Sink::Reduce && vectorDim != reduceDim)
    order.push_back(reduceDim);
}

void Nest::assignLevels() {
  for (NodeInfo &node : nodes) {
    if (isAccess(node)) {
      for (auto [level, dim] : llvm::enumerate(order)) {
        if (node.strides[dim].is(0))
          continue;
        node.level = level;
        node.alongVector |= dim == vectorDim;
      }
    }
    for (Node operand : node.operands) {
      node.level = std::max(node.level, nodes[operand].level);
      node.alongVector |= nodes[operand].alongVector;
    }
  }
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

void Nest::emit() {
  simplifyDims();
  orderLoops();
  assignLevels();
  for (auto [id, node] : llvm::enumerate(nodes))
    if (node.level == -1 && id != target)
      evaluate(node);
  emitLevel(0);
}

void Nest::emitLevel(int level) {
  if (level == int(order.size())) {
    write(valueAs(root, width));
    return;
  }
  unsigned dim = order[level];
  if (sink == Sink::Reduce && dim == reduceDim) {
    Value result = dim == vectorDim ? reduceAlong(level) : reduceAcross(level);
    write(result);
    return;
  }
  if (dim == vectorDim) {
    emitVectorLoop(level);
    return;
  }
  Int end = dims[dim].limit ? Int(dims[dim].limit) : Int(dims[dim].size);
  b.loop(0, end, 1, [&](Value iv) {
    enter(level, iv, 1);
    emitLevel(level + 1);
  });
}

void Nest::emitVectorLoop(int level) {
  BoxDim &dim = dims[*vectorDim];
  auto body = [&](Int index, int64_t lanes) {
    enter(level, index, lanes);
    emitLevel(level + 1);
    width = 1;
  };
  if (!dim.limit) {
    b.forEachVector(dim.size, body);
    return;
  }
  int64_t lanes = b.getTraits().lanes;
  Value rest = arith::RemSIOp::create(b, dim.limit, b.i64(lanes));
  Value full = arith::SubIOp::create(b, dim.limit, rest);
  if (dim.size >= lanes)
    b.loop(0, full, lanes, [&](Value iv) { body(iv, lanes); });
  b.loop(full, dim.limit, 1, [&](Value iv) { body(iv, 1); });
}

void Nest::enter(int level, Int index, int64_t vectorWidth) {
  dims[order[level]].index = index;
  if (order[level] == vectorDim)
    width = vectorWidth;
  for (auto [id, node] : llvm::enumerate(nodes))
    if (node.level == level && id != target)
      evaluate(node);
}

Int Nest::indexOffset(const NodeInfo &node) {
  Int sum = node.offset;
  for (auto [dim, stride] : llvm::zip_equal(dims, node.strides))
    sum = b.add(sum, b.mul(dim.index, stride));
  return sum;
}

void Nest::evaluate(NodeInfo &node) {
  switch (node.kind) {
  case NodeInfo::Kind::Scalar:
    return;
  case NodeInfo::Kind::Memory: {
    Value address = b.address(node.base, indexOffset(node), node.type);
    node.value =
        b.load(b.widened(node.type, node.alongVector ? width : 1), address);
    return;
  }
  case NodeInfo::Kind::Iota:
    node.value = evaluateIota(node);
    return;
  case NodeInfo::Kind::Compute:
    node.value = evaluateCompute(node);
    return;
  }
}

Value Nest::evaluateIota(const NodeInfo &node) {
  Value start = b.valueOf(indexOffset(node));
  if (!node.type.isInteger(64))
    start = arith::TruncIOp::create(b, node.type, start);
  if (!node.alongVector || width == 1)
    return start;
  int64_t step = node.strides[*vectorDim].getKnown();
  SmallVector<Attribute> lanes;
  for (int64_t lane = 0; lane < width; ++lane)
    lanes.push_back(b.getIntegerAttr(node.type, lane * step));
  auto type = VectorType::get({width}, node.type);
  Value steps =
      arith::ConstantOp::create(b, DenseElementsAttr::get(type, lanes));
  return arith::AddIOp::create(b, b.broadcast(start, width), steps);
}

Value Nest::evaluateCompute(const NodeInfo &node) {
  int64_t lanes = node.alongVector ? width : 1;
  SmallVector<Value> operands;
  for (Node operand : node.operands)
    operands.push_back(valueAs(operand, lanes));
  OperationState state(node.op->getLoc(), node.op->getName());
  state.addOperands(operands);
  state.addTypes(b.widened(node.type, lanes));
  state.addAttributes(node.op->getAttrs());
  Operation *op = b.create(state);
  // Of the relaxations of floating point only fused products are allowed:
  // masks rely on infinities and NaN, and what is rounded stays so.
  if (auto arithmetic = dyn_cast<arith::ArithFastMathInterface>(op);
      arithmetic && !isa<arith::ExtFOp, arith::TruncFOp>(op))
    op->setAttr(arithmetic.getFastMathAttrName(),
                arith::FastMathFlagsAttr::get(b.getContext(),
                                              arith::FastMathFlags::contract));
  return op->getResult(0);
}

Value Nest::valueAs(Node node, int64_t lanes) {
  Value value = nodes[node].value;
  return lanes == 1 || isa<VectorType>(value.getType())
             ? value
             : b.broadcast(value, lanes);
}

void Nest::write(Value value) {
  const NodeInfo &to = nodes[target];
  Value address = b.address(to.base, indexOffset(to), to.type);
  if (sink == Sink::Accumulate) {
    Value sum =
        arith::AddFOp::create(b, b.load(value.getType(), address), value);
    value = first ? arith::SelectOp::create(b, first, value, sum) : sum;
  }
  b.store(value, address);
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

Value Nest::neutral(int64_t lanes) {
  double value = reduceKind == tile::ReduceKind::sum ? 0.0 : -INFINITY;
  TypedAttr scalar = b.getFloatAttr(nodes[root].type, value);
  return b.broadcast(arith::ConstantOp::create(b, scalar), lanes);
}

Value Nest::combine(Value x, Value y) {
  if (reduceKind == tile::ReduceKind::sum)
    return arith::AddFOp::create(b, x, y);
  return arith::MaximumFOp::create(b, x, y);
}

Value Nest::reduceLanes(Value vector) {
  return b.reduceLanes(vector, [&](Value x, Value y) { return combine(x, y); });
}

/// The reduced dim is an outer dim of memory: whole vectors are combined.
Value Nest::reduceAcross(int level) {
  Value init = neutral(width);
  return b.loop(
      0, dims[reduceDim].size, 1, init, [&](Value iv, ValueRange carried) {
        enter(level, iv, 1);
        return SmallVector<Value>{combine(carried[0], valueAs(root, width))};
      })[0];
}

/// The reduced dim runs in vectors: lane by lane first, then the lanes.
Value Nest::reduceAlong(int level) {
  int64_t lanes = b.getTraits().lanes;
  int64_t size = dims[reduceDim].size;
  int64_t full = size / lanes * lanes;
  Value result;
  if (full != 0) {
    Value init = neutral(lanes);
    Value sums =
        b.loop(0, full, lanes, init, [&](Value iv, ValueRange carried) {
          enter(level, iv, lanes);
          return SmallVector<Value>{combine(carried[0], valueAs(root, lanes))};
        })[0];
    result = reduceLanes(sums);
  } else {
    result = neutral(1);
  }
  for (int64_t start = full, part = lanes / 2; start < size; part /= 2) {
    if (start + part > size)
      continue;
    enter(level, start, part);
    Value value = valueAs(root, part);
    result = combine(result, part == 1 ? value : reduceLanes(value));
    start += part;
  }
  width = 1;
  return result;
}
