//===- PlanReader.cpp ----------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Plan.h"

#include "core/ArenaLayout.h"
#include "io/Json.h"

#include <set>

namespace hyb::rt {

namespace {

constexpr const char *kBufferKindNames[kBufferKinds] = {
    "arena",  "param",    "gradient",      "state",         "ids",
    "labels", "weights",  "segment_table", "token_segment", "loss",
    "logits", "moment1",  "moment2",       "scalars",       "input",
    "output", "constant", "param_copy",    "random_key",    "tokens_by_id"};

Result<std::vector<Expression>> readExpressions(const Json &object,
                                                const char *key, size_t limit,
                                                const std::string &where) {
  HYB_ASSIGN(const Json *list, jsonArray(object, key, where));
  if (list->size() > limit)
    return failure(HYB_INVALID_FILE, "%s: '%s' has %zu values, at most %zu",
                   where.c_str(), key, list->size(), limit);
  std::vector<Expression> result;
  for (const Json &value : *list) {
    HYB_ASSIGN(Expression expression,
               Expression::fromJson(value, where + " " + key));
    result.push_back(std::move(expression));
  }
  return result;
}

/// A non-negative number below `limit`, which `role` counts.
Result<uint32_t> readIndex(const Json &object, const char *key, size_t limit,
                           const std::string &where) {
  HYB_ASSIGN(int64_t value, jsonInteger(object, key, where));
  if (value < 0 || static_cast<uint64_t>(value) >= limit)
    return failure(HYB_INVALID_FILE, "%s: '%s' is %lld, of %zu", where.c_str(),
                   key, static_cast<long long>(value), limit);
  return static_cast<uint32_t>(value);
}

Result<PlanTensorMap> readTensorMap(const Json &value,
                                    const std::string &where) {
  PlanTensorMap map;
  HYB_ASSIGN(map.view, readIndex(value, "view", UINT16_MAX, where));
  HYB_ASSIGN(std::string type, jsonText(value, "type", where));
  if (type != "bf16" && type != "f16")
    return failure(HYB_INVALID_FILE, "%s: type '%.32s' is not bf16 or f16",
                   where.c_str(), type.c_str());
  map.isBf16 = type == "bf16";
  HYB_ASSIGN(const Json *box, jsonArray(value, "box", where));
  for (const Json &item : *box) {
    std::optional<int64_t> size = jsonAsInteger(item);
    if (!size || *size < 1 || *size > 256)
      return failure(HYB_INVALID_FILE,
                     "%s: 'box' holds a value that is no number from 1 to 256",
                     where.c_str());
    map.box.push_back(*size);
  }
  constexpr int64_t kRowElements = 64;
  if (map.box.empty() || map.box.size() > kMaxViewRank ||
      map.box.back() != kRowElements)
    return failure(HYB_INVALID_FILE,
                   "%s: 'box' has %zu sizes, expected 1 to %zu, the last %lld",
                   where.c_str(), map.box.size(), kMaxViewRank,
                   static_cast<long long>(kRowElements));
  return map;
}

Status readTensorMaps(const Json &value, const std::string &where,
                      PlanKernel &kernel) {
  HYB_ASSIGN(const Json *maps, jsonArray(value, "maps", where));
  if (kernel.threads == 0 || maps->size() > kMaxTensorMaps)
    return failure(
        HYB_INVALID_FILE,
        "%s: %zu tensor maps; a kernel of an accelerator has at most "
        "%zu, others none",
        where.c_str(), maps->size(), kMaxTensorMaps);
  for (size_t i = 0; i < maps->size(); ++i) {
    HYB_ASSIGN(PlanTensorMap map,
               readTensorMap((*maps)[i], where + " map " + std::to_string(i)));
    kernel.maps.push_back(std::move(map));
  }
  return Status();
}

/// A truth value that need not be there.
Status readFlag(const Json &value, const char *key, const std::string &where,
                bool &flag) {
  if (!value.contains(key))
    return Status();
  const Json &given = value[key];
  if (!given.is_boolean())
    return failure(HYB_INVALID_FILE, "%s: '%s' is %s, expected a truth value",
                   where.c_str(), key, given.type_name());
  flag = given.get<bool>();
  return Status();
}

Result<PlanKernel> readKernel(const Json &value, const std::string &where) {
  PlanKernel kernel;
  HYB_ASSIGN(kernel.symbol, jsonText(value, "symbol", where));
  HYB_ASSIGN(kernel.name, jsonText(value, "name", where));
  if (value.contains("caution")) {
    HYB_ASSIGN(kernel.caution, jsonText(value, "caution", where));
  }
  if (value.contains("threads")) {
    HYB_ASSIGN(kernel.threads, jsonInteger(value, "threads", where));
    HYB_ASSIGN(kernel.sharedBytes, jsonInteger(value, "shared", where));
    HYB_TRY(readFlag(value, "overlaps", where, kernel.overlaps));
    HYB_TRY(readFlag(value, "persistent", where, kernel.persistent));
  } else {
    HYB_ASSIGN(kernel.scratchBytes, jsonInteger(value, "scratch", where));
  }
  if (value.contains("maps"))
    HYB_TRY(readTensorMaps(value, where, kernel));
  HYB_ASSIGN(kernel.grid, readExpressions(value, "grid", kMaxGridRank, where));
  HYB_ASSIGN(const Json *parallel, jsonArray(value, "parallel", where));
  for (const Json &flag : *parallel) {
    if (!flag.is_boolean())
      return failure(HYB_INVALID_FILE,
                     "%s: 'parallel' holds %s, expected "
                     "truth values",
                     where.c_str(), flag.type_name());
    kernel.parallel.push_back(flag.get<bool>());
  }
  if (kernel.parallel.size() != kernel.grid.size())
    return failure(HYB_INVALID_FILE,
                   "%s: 'grid' has %zu dimensions and 'parallel' %zu",
                   where.c_str(), kernel.grid.size(), kernel.parallel.size());
  for (auto [key, number] : {std::pair{"scratch", kernel.scratchBytes},
                             {"shared", kernel.sharedBytes},
                             {"threads", kernel.threads}})
    if (number < 0)
      return failure(HYB_INVALID_FILE, "%s: '%s' is %lld", where.c_str(), key,
                     static_cast<long long>(number));
  return kernel;
}

Status readConstant(const Json &value, const std::string &where,
                    ElementType type, std::vector<uint32_t> &bits) {
  if (elementBytes(type) != kElementBytes)
    return failure(HYB_INVALID_FILE, "%s: a constant of type %s", where.c_str(),
                   elementTypeName(type));
  bool isFloat = type == ElementType::F32;
  HYB_ASSIGN(const Json *data, jsonArray(value, "data", where));
  for (const Json &element : *data) {
    uint32_t word;
    std::optional<int64_t> integer = jsonAsInteger(element);
    if (isFloat && element.is_number()) {
      float number = element.get<float>();
      std::memcpy(&word, &number, sizeof(word));
    } else if (!isFloat && integer && *integer >= INT32_MIN &&
               *integer <= INT32_MAX) {
      word = static_cast<uint32_t>(static_cast<int32_t>(*integer));
    } else {
      return failure(HYB_INVALID_FILE, "%s: 'data' holds a value that is no %s",
                     where.c_str(), isFloat ? "f32" : "i32");
    }
    bits.push_back(word);
  }
  return Status();
}

Result<PlanBuffer> readBuffer(const Json &value, size_t launches, size_t pieces,
                              const std::string &where) {
  PlanBuffer buffer;
  HYB_ASSIGN(buffer.name, jsonText(value, "name", where));
  HYB_ASSIGN(std::string kind, jsonText(value, "kind", where));
  const auto *found =
      std::find(std::begin(kBufferKindNames), std::end(kBufferKindNames), kind);
  if (found == std::end(kBufferKindNames))
    return failure(HYB_INVALID_FILE, "%s: unknown kind '%.32s'", where.c_str(),
                   kind.c_str());
  buffer.kind = static_cast<BufferKind>(found - std::begin(kBufferKindNames));
  HYB_ASSIGN(std::string type, jsonText(value, "type", where));
  HYB_ASSIGN(buffer.type, elementTypeNamed(type, where));
  HYB_ASSIGN(buffer.sizes, readExpressions(value, "sizes", 8, where));
  if (value.contains("path")) {
    HYB_ASSIGN(buffer.path, jsonText(value, "path", where));
  }
  if (buffer.kind == BufferKind::Constant)
    HYB_TRY(readConstant(value, where, buffer.type, buffer.data));
  if (buffer.kind == BufferKind::Arena) {
    HYB_ASSIGN(buffer.first, readIndex(value, "first", launches, where));
    HYB_ASSIGN(buffer.last, readIndex(value, "last", launches, where));
    if (value.contains("pieces")) {
      HYB_ASSIGN(buffer.pieces, readIndex(value, "pieces", pieces, where));
    }
  }
  return buffer;
}

Result<PlanView> readView(const Json &value, size_t buffers,
                          const std::string &where) {
  PlanView view;
  HYB_ASSIGN(view.buffer, readIndex(value, "buffer", buffers, where));
  HYB_ASSIGN(const Json *offset, jsonMember(value, "offset", where));
  HYB_ASSIGN(view.offset, Expression::fromJson(*offset, where + " offset"));
  HYB_ASSIGN(view.sizes, readExpressions(value, "sizes", kMaxViewRank, where));
  HYB_ASSIGN(view.strides,
             readExpressions(value, "strides", kMaxViewRank, where));
  if (view.sizes.size() != view.strides.size())
    return failure(HYB_INVALID_FILE, "%s: %zu sizes and %zu strides",
                   where.c_str(), view.sizes.size(), view.strides.size());
  return view;
}

Result<PlanProduct> readProduct(const Json &item, const std::string &at) {
  std::string where = at + " product";
  PlanProduct product;
  HYB_ASSIGN(const Json *value, jsonObject(item, "product", at));
  for (auto [key, flag] : {std::pair{"transpose_a", &product.transposeA},
                           {"transpose_b", &product.transposeB},
                           {"accumulate", &product.accumulate},
                           {"parts", &product.parts}})
    HYB_TRY(readFlag(*value, key, where, *flag));
  HYB_ASSIGN(product.a, readIndex(*value, "a", UINT16_MAX, where));
  HYB_ASSIGN(product.b, readIndex(*value, "b", UINT16_MAX, where));
  HYB_ASSIGN(product.c, readIndex(*value, "c", UINT16_MAX, where));
  return product;
}

Result<PlanLaunch> readLaunch(const Json &value, size_t kernels, size_t buffers,
                              const std::string &where) {
  PlanLaunch launch;
  HYB_ASSIGN(launch.layer, jsonInteger(value, "layer", where));
  HYB_ASSIGN(launch.op, jsonText(value, "op", where));
  HYB_ASSIGN(const Json *alternatives, jsonArray(value, "alternatives", where));
  for (const Json &item : *alternatives) {
    PlanAlternative alternative;
    HYB_ASSIGN(const Json *guard, jsonMember(item, "guard", where));
    if (!guard->is_null()) {
      HYB_ASSIGN(alternative.guard,
                 Predicate::fromJson(*guard, where + " guard"));
    }
    HYB_ASSIGN(alternative.kernel, readIndex(item, "kernel", kernels, where));
    HYB_ASSIGN(const Json *views, jsonArray(item, "views", where));
    for (const Json &view : *views) {
      HYB_ASSIGN(PlanView parsed, readView(view, buffers, where));
      alternative.views.push_back(std::move(parsed));
    }
    if (item.contains("product")) {
      HYB_ASSIGN(alternative.product, readProduct(item, where));
    }
    launch.alternatives.push_back(std::move(alternative));
  }
  return launch;
}

Result<std::vector<PlanPieces>> readPieces(const Json &value, size_t launches,
                                           const std::string &where) {
  std::vector<PlanPieces> result;
  if (!value.contains("pieces"))
    return result;
  HYB_ASSIGN(const Json *list, jsonArray(value, "pieces", where));
  for (size_t i = 0; i < list->size(); ++i) {
    const Json &item = (*list)[i];
    std::string at = where + " pieces " + std::to_string(i);
    PlanPieces pieces;
    HYB_ASSIGN(pieces.rows, jsonInteger(item, "rows", at));
    HYB_ASSIGN(pieces.first, readIndex(item, "first", launches, at));
    HYB_ASSIGN(pieces.last, readIndex(item, "last", launches, at));
    if (pieces.rows < 1)
      return failure(HYB_INVALID_FILE, "%s: 'rows' is %lld, at least 1",
                     at.c_str(), static_cast<long long>(pieces.rows));
    if (pieces.last < pieces.first ||
        (!result.empty() && pieces.first <= result.back().last))
      return failure(HYB_INVALID_FILE,
                     "%s: launches %u to %u, which are none or stand before "
                     "the end of the pieces before",
                     at.c_str(), pieces.first, pieces.last);
    result.push_back(pieces);
  }
  return result;
}

/// That the views of a product exist, are matrices and have fitting types; what
/// their sizes are is known when a call is.
Status checkProduct(const PlanEntry &entry, uint32_t launch, uint32_t choice,
                    const std::string &where) {
  const PlanAlternative &own = entry.launches[launch].alternatives[choice];
  if (!own.product)
    return Status();
  if (own.product->parts &&
      (launch == 0 || entry.launches[launch].alternatives.size() != 1 ||
       entry.launches[launch - 1].alternatives.size() != 1))
    return failure(HYB_INVALID_FILE,
                   "%s: a product of parts and no launch in front of it, or "
                   "one of the two has alternatives",
                   where.c_str());
  const PlanAlternative &factors = entry.factorsOf(launch, choice);
  ElementType types[3] = {};
  size_t next = 0;
  for (auto [number, of] : {std::pair{own.product->a, &factors},
                            {own.product->b, &factors},
                            {own.product->c, &own}}) {
    if (number >= of->views.size() || of->views[number].sizes.size() != 2)
      return failure(HYB_INVALID_FILE,
                     "%s: a product of view %u, which is no matrix, of %zu "
                     "views",
                     where.c_str(), number, of->views.size());
    types[next++] = entry.buffers[of->views[number].buffer].type;
  }
  if (!isFloat(types[0]) || types[0] != types[1] ||
      (types[2] != types[0] && types[2] != ElementType::F32))
    return failure(HYB_INVALID_FILE,
                   "%s: a product of %s and %s in %s; factors have one type "
                   "and the result that or f32",
                   where.c_str(), elementTypeName(types[0]),
                   elementTypeName(types[1]), elementTypeName(types[2]));
  return Status();
}

Status checkProducts(const PlanEntry &entry, const std::string &where) {
  for (uint32_t i = 0; i < entry.launches.size(); ++i)
    for (uint32_t c = 0; c < entry.launches[i].alternatives.size(); ++c)
      HYB_TRY(
          checkProduct(entry, i, c, where + " launch " + std::to_string(i)));
  return Status();
}

/// Inputs and outputs have names, no two the same.
Status findArguments(PlanEntry &entry, const std::string &where) {
  std::set<std::string> names;
  for (BufferKind kind : {BufferKind::Input, BufferKind::Output}) {
    for (uint32_t i = 0; i < entry.buffers.size(); ++i) {
      const PlanBuffer &buffer = entry.buffers[i];
      if (buffer.kind != kind)
        continue;
      if (buffer.path.empty() || !names.insert(buffer.path).second)
        return failure(HYB_INVALID_FILE,
                       "%s: buffer %u is an %s with the name '%.64s', which is "
                       "empty or taken",
                       where.c_str(), i, bufferKindName(kind),
                       buffer.path.c_str());
      entry.arguments.push_back(i);
    }
  }
  return Status();
}

Result<PlanEntry> readEntry(const std::string &name, const Json &value,
                            size_t kernels) {
  std::string where = "plan entry " + name;
  PlanEntry entry;
  entry.name = name;
  HYB_ASSIGN(const Json *buffers, jsonArray(value, "buffers", where));
  HYB_ASSIGN(const Json *launches, jsonArray(value, "launches", where));
  HYB_ASSIGN(entry.pieces, readPieces(value, launches->size(), where));
  for (size_t i = 0; i < buffers->size(); ++i) {
    HYB_ASSIGN(PlanBuffer buffer,
               readBuffer((*buffers)[i], launches->size(), entry.pieces.size(),
                          where + " buffer " + std::to_string(i)));
    entry.buffers.push_back(std::move(buffer));
  }
  for (size_t i = 0; i < launches->size(); ++i) {
    HYB_ASSIGN(PlanLaunch launch,
               readLaunch((*launches)[i], kernels, buffers->size(),
                          where + " launch " + std::to_string(i)));
    entry.launches.push_back(std::move(launch));
  }
  for (uint32_t i = 0; i < entry.buffers.size(); ++i) {
    if (entry.buffers[i].kind == BufferKind::RandomKey)
      entry.randomKeys.push_back(i);
    entry.readsTokensById |= entry.buffers[i].kind == BufferKind::TokensById;
  }
  HYB_TRY(checkProducts(entry, where));
  HYB_TRY(findArguments(entry, where));
  return entry;
}

/// Appends the constants of an entry to those of the plan, each at a multiple
/// of the alignment of buffers.
void gatherConstants(PlanEntry &entry, std::vector<uint32_t> &constants) {
  for (PlanBuffer &buffer : entry.buffers) {
    if (buffer.kind != BufferKind::Constant)
      continue;
    constexpr size_t kStep = kArenaAlignment / kElementBytes;
    constants.resize((constants.size() + kStep - 1) / kStep * kStep);
    buffer.constantOffset =
        static_cast<int64_t>(constants.size()) * kElementBytes;
    constants.insert(constants.end(), buffer.data.begin(), buffer.data.end());
  }
}

} // namespace

const char *bufferKindName(BufferKind kind) {
  return kBufferKindNames[static_cast<size_t>(kind)];
}

std::string PlanLaunch::label() const {
  return layer < 0 ? op : "layer " + std::to_string(layer) + " " + op;
}

ElementType Plan::computeType() const {
  for (const auto &[name, entry] : entries)
    for (const PlanBuffer &buffer : entry.buffers)
      if (buffer.kind == BufferKind::ParamCopy)
        return buffer.type;
  return ElementType::F32;
}

namespace {
/// The paths of parameters that some launch of the entry reads in f32. An entry
/// lists others too.
void addWideParameters(const PlanEntry &entry, std::set<std::string> &paths) {
  for (const PlanLaunch &launch : entry.launches)
    for (const PlanAlternative &alternative : launch.alternatives)
      for (const PlanView &view : alternative.views) {
        const PlanBuffer &buffer = entry.buffers[view.buffer];
        if (buffer.kind == BufferKind::Param && !buffer.path.empty())
          paths.insert(buffer.path);
      }
}
} // namespace

std::set<std::string> Plan::wideParameters() const {
  std::set<std::string> paths;
  for (const auto &[name, entry] : entries)
    if (name != "update" && name != kCopyEntry)
      addWideParameters(entry, paths);
  return paths;
}

/// Copies are one flat buffer of one type, which is narrower than f32.
static Status checkCopies(const Plan &plan) {
  ElementType type = plan.computeType();
  for (const auto &[name, entry] : plan.entries)
    for (const PlanBuffer &buffer : entry.buffers)
      if (buffer.kind == BufferKind::ParamCopy &&
          (buffer.type != type || elementBytes(type) != 2))
        return failure(HYB_INVALID_FILE,
                       "plan entry %s: a copy of parameters is %s; all are "
                       "bf16 or all f16",
                       name.c_str(), elementTypeName(buffer.type));
  return Status();
}

Result<Plan> Plan::parse(Bytes text) {
  HYB_ASSIGN(JsonDocument root, parseJsonObject(text, "plan"));
  Plan plan;
  HYB_ASSIGN(const Json *kernels, jsonArray(root, "kernels", "plan"));
  for (size_t i = 0; i < kernels->size(); ++i) {
    HYB_ASSIGN(PlanKernel kernel,
               readKernel((*kernels)[i], "plan kernel " + std::to_string(i)));
    plan.kernels.push_back(std::move(kernel));
  }
  HYB_ASSIGN(const Json *entries, jsonObject(root, "entries", "plan"));
  for (const auto &[name, value] : entries->items()) {
    HYB_ASSIGN(PlanEntry entry, readEntry(name, value, plan.kernels.size()));
    gatherConstants(entry, plan.constants);
    plan.entries.emplace(name, std::move(entry));
  }
  HYB_TRY(checkCopies(plan));
  return plan;
}

} // namespace hyb::rt
