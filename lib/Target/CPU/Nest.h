//===- Nest.h - one loop nest for a fused elementwise expression ---------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef HYBRID_LIB_TARGET_CPU_NEST_H
#define HYBRID_LIB_TARGET_CPU_NEST_H

#include "Place.h"
#include "hybrid/Tile/TileOps.h"

namespace hybrid::cpu {

/// A loop nest over a box of elements that evaluates a graph of expressions per
/// element and writes one result: elementwise, added to memory, or reduced
/// along a dim. Dims that every access steps through evenly are merged, the
/// last one runs in vectors, and what does not depend on a loop is computed
/// outside it.
class Nest {
public:
  using Node = unsigned;
  /// Where a tile lies in the box: the dim of the box that each of its dims
  /// runs along (or none) and the index it starts from.
  struct Dim {
    std::optional<unsigned> along;
    int64_t start = 0;
    bool operator==(const Dim &other) const {
      return along == other.along && start == other.start;
    }
  };
  using Map = llvm::SmallVector<Dim, 3>;

  Nest(CodeBuilder &b, llvm::ArrayRef<int64_t> shape);

  /// Each dim of a tile of the shape of the box along the dim of the box.
  static Map identity(int64_t rank);

  Node read(const Place &place, const Map &map);
  Node scalar(mlir::Value value);
  /// The index along a dim, as `type`.
  Node iota(const Dim &dim, mlir::Type type);
  /// An elementwise op, cloned onto the element types.
  Node compute(mlir::Operation *op, llvm::ArrayRef<Node> operands);

  /// The node of a tile seen through a map, once there is one.
  std::optional<Node> lookup(mlir::Value tile, const Map &map) const;
  void remember(mlir::Value tile, const Map &map, Node node) {
    known.push_back({tile, map, node});
  }

  /// Only the first `count` indices of a dim are visited, 0 <= count <= size.
  void limit(unsigned dim, mlir::Value count) { dims[dim].limit = count; }

  void emitStore(Node node, const Place &to);
  /// to = first ? node : to + node; without `first` it adds.
  void emitAccumulate(Node node, const Place &to, mlir::Value first);
  /// Of dim `dim` of the box, to a place in which it has size 1.
  void emitReduce(Node node, tile::ReduceKind kind, unsigned dim,
                  const Place &to);

private:
  struct BoxDim {
    int64_t size;
    mlir::Value limit = nullptr;
    /// Where the code being built stands.
    Int index = 0;
  };
  /// Memory is `base` + `offset` + Σ strides[d] * index[d]; for an iota that
  /// sum (without base) is the value.
  struct NodeInfo {
    enum class Kind { Memory, Iota, Scalar, Compute } kind;
    mlir::Type type;
    mlir::Value base = nullptr;
    Int offset = 0;
    llvm::SmallVector<Int, 4> strides = {};
    mlir::Operation *op = nullptr;
    llvm::SmallVector<Node, 3> operands = {};
    /// Position of the innermost loop that it depends on; -1 for none.
    int level = -1;
    bool alongVector = false;
    mlir::Value value = nullptr;
  };

  Node append(NodeInfo node);
  bool isAccess(const NodeInfo &node) const {
    return node.kind == NodeInfo::Kind::Memory ||
           node.kind == NodeInfo::Kind::Iota;
  }
  void setTarget(const Place &to);
  /// Whether one loop can run over dims `outer` and `outer + 1`.
  bool stepsEvenly(unsigned outer) const;
  void eraseDim(unsigned dim);
  void simplifyDims();
  bool runsInVectors(unsigned dim) const;
  void orderLoops();
  void assignLevels();

  void emit();
  void emitLevel(int level);
  void emitVectorLoop(int level);
  /// Stands at an index of the loop at `level`: computes what depends on no
  /// deeper loop.
  void enter(int level, Int index, int64_t vectorWidth);
  void evaluate(NodeInfo &node);
  mlir::Value evaluateIota(const NodeInfo &node);
  mlir::Value evaluateCompute(const NodeInfo &node);
  Int indexOffset(const NodeInfo &node);
  mlir::Value valueAs(Node node, int64_t lanes);
  void write(mlir::Value value);

  mlir::Value reduceAcross(int level);
  mlir::Value reduceAlong(int level);
  mlir::Value combine(mlir::Value x, mlir::Value y);
  mlir::Value reduceLanes(mlir::Value vector);
  mlir::Value neutral(int64_t lanes);

  CodeBuilder &b;
  llvm::SmallVector<BoxDim, 4> dims;
  llvm::SmallVector<NodeInfo, 16> nodes;
  llvm::SmallVector<std::tuple<mlir::Value, Map, Node>> known;
  /// Dims from the outermost loop to the innermost.
  llvm::SmallVector<unsigned, 4> order;
  /// The dim that runs in vectors, and the width of the code being built.
  std::optional<unsigned> vectorDim;
  int64_t width = 1;

  Node root = 0;
  /// Where the result goes; a node that is never evaluated.
  Node target = 0;
  enum class Sink { Store, Accumulate, Reduce } sink = Sink::Store;
  mlir::Value first;
  tile::ReduceKind reduceKind = tile::ReduceKind::sum;
  unsigned reduceDim = 0;
};

} // namespace hybrid::cpu

#endif // HYBRID_LIB_TARGET_CPU_NEST_H
