//===- Simulator.cpp - all blocks of a kernel -----------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ThreadBlock.h"

using namespace mlir;
using namespace hybrid;
using namespace hybrid::hopper;

SmallVector<int64_t, 4> sim::pointOf(KernelOp kernel, ArrayRef<int64_t> sizes,
                                     int64_t task) {
  SmallVector<int64_t, 4> point(sizes.size(), 0);
  SmallVector<int64_t> order(kernel.getTraversal());
  if (int64_t group = kernel.getGroup(); group > 1) {
    // Every point of the two fastest dims, in the order that the op describes.
    int64_t fast = order.pop_back_val(), next = order.pop_back_val();
    int64_t inside = task % (sizes[fast] * sizes[next]), count = 0;
    task /= sizes[fast] * sizes[next];
    for (int64_t first = 0; first < sizes[fast]; first += group)
      for (int64_t b = 0; b < sizes[next]; ++b)
        for (int64_t a = first; a < std::min(first + group, sizes[fast]); ++a)
          if (count++ == inside) {
            point[fast] = a;
            point[next] = b;
          }
  }
  for (int64_t dim : llvm::reverse(order)) {
    point[dim] = task % sizes[dim];
    task /= sizes[dim];
  }
  for (int64_t dim : kernel.getDescending())
    point[dim] = sizes[dim] - 1 - point[dim];
  return point;
}

std::string sim::simulate(KernelOp kernel, ArrayRef<tile::HostView> views,
                          ArrayRef<int64_t> symbols, const Policy &policy) {
  SmallVector<Attribute> constants, results;
  Builder builder(kernel.getContext());
  for (int64_t symbol : symbols)
    constants.push_back(builder.getI64IntegerAttr(symbol));
  if (failed(kernel.getGrid().constantFold(constants, results)))
    return "the grid is no number";
  SmallVector<int64_t> sizes;
  int64_t tasks = 1;
  for (Attribute size : results) {
    sizes.push_back(cast<IntegerAttr>(size).getInt());
    tasks *= sizes.back();
  }
  // Of a persistent kernel half as many blocks as points, which take two each.
  int64_t blocks = tasks;
  if (kernel.isPersistent())
    blocks = (tasks + 1) / 2;
  for (int64_t block = 0; block < blocks; ++block) {
    Policy own = policy;
    own.seed += unsigned(block);
    std::string fault =
        ThreadBlock(kernel, views, {sizes, block, blocks}, own).run();
    if (!fault.empty())
      return fault;
  }
  return "";
}
