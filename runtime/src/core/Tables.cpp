//===- Tables.cpp --------------------------------------------------------===//
//
// Part of hybridc, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Tables.h"

#include "core/Checked.h"
#include "io/Json.h"

#include <set>

namespace hyb::rt {

namespace {

struct InitRow {
  const char *name;
  InitKind kind;
  size_t values;
};

constexpr InitRow kInits[] = {
    {"normal", InitKind::Normal, 1},
    {"ones", InitKind::Ones, 0},
    {"zeros", InitKind::Zeros, 0},
    {"constant", InitKind::Constant, 1},
    {"log_uniform", InitKind::LogUniform, 2},
    {"inverse_softplus_log_uniform", InitKind::InverseSoftplusLogUniform, 3}};

Status readInit(const Json &value, const std::string &where,
                ParameterInfo &parameter) {
  HYB_ASSIGN(const Json *init, jsonObject(value, "init", where));
  HYB_ASSIGN(std::string kind, jsonText(*init, "kind", where));
  HYB_ASSIGN(const Json *values, jsonArray(*init, "values", where));
  for (const InitRow &row : kInits) {
    if (kind != row.name)
      continue;
    if (values->size() != row.values)
      return failure(HYB_INVALID_FILE,
                     "%s: init %s has %zu values, expected "
                     "%zu",
                     where.c_str(), row.name, values->size(), row.values);
    parameter.init = row.kind;
    for (size_t i = 0; i < row.values; ++i) {
      if (!(*values)[i].is_number())
        return failure(HYB_INVALID_FILE,
                       "%s: a value of init is %s, expected "
                       "a number",
                       where.c_str(), (*values)[i].type_name());
      parameter.values[i] = (*values)[i].get<double>();
    }
    return Status();
  }
  return failure(HYB_INVALID_FILE, "%s: unknown init '%.32s'", where.c_str(),
                 kind.c_str());
}

Result<ParameterInfo> readParameter(const Json &value, std::string where) {
  ParameterInfo parameter;
  HYB_ASSIGN(parameter.path, jsonText(value, "path", where));
  where = parameter.path;
  HYB_ASSIGN(const Json *shape, jsonArray(value, "shape", where));
  parameter.elements = 1;
  for (const Json &item : *shape) {
    std::optional<int64_t> size = jsonAsInteger(item);
    if (!size || *size < 1 ||
        !checkedMul(parameter.elements, *size, &parameter.elements))
      return failure(HYB_INVALID_FILE,
                     "%s: 'shape' holds a size that is not positive or too "
                     "large",
                     where.c_str());
    parameter.shape.push_back(*size);
  }
  HYB_ASSIGN(parameter.offset, jsonInteger(value, "offset", where));
  HYB_ASSIGN(parameter.decay, jsonBool(value, "decay", where));
  HYB_TRY(readInit(value, where, parameter));
  return parameter;
}

/// Parameters are ascending, apart, on 64 bytes and inside the flat buffer;
/// those with decay come first.
Status checkLayout(const ParameterTable &table) {
  int64_t end = 0;
  for (const ParameterInfo &parameter : table.parameters) {
    int64_t next;
    if (parameter.offset < end || parameter.offset % 16 != 0 ||
        !checkedAdd(parameter.offset, parameter.elements, &next) ||
        next > table.elements)
      return failure(HYB_INVALID_FILE,
                     "%s: offset %lld is inside the parameter before it, not a "
                     "multiple of 16, or ends after the %lld elements",
                     parameter.path.c_str(),
                     static_cast<long long>(parameter.offset),
                     static_cast<long long>(table.elements));
    end = next;
    bool inDecayPart = end <= table.decayElements;
    if (parameter.decay != inDecayPart)
      return failure(HYB_INVALID_FILE,
                     "%s: ends at %lld, which is on the wrong side of "
                     "'decay_elements' %lld",
                     parameter.path.c_str(), static_cast<long long>(end),
                     static_cast<long long>(table.decayElements));
  }
  return Status();
}

} // namespace

Result<ModelMeta> ModelMeta::parse(Bytes text) {
  HYB_ASSIGN(JsonDocument root, parseJsonObject(text, "meta"));
  ModelMeta meta;
  HYB_ASSIGN(meta.name, jsonText(root, "model", "meta"));
  HYB_ASSIGN(meta.spec, jsonText(root, "spec", "meta"));
  HYB_ASSIGN(meta.toolchain, jsonText(root, "toolchain", "meta"));
  HYB_ASSIGN(meta.vocabulary, jsonInteger(root, "vocab", "meta"));
  HYB_ASSIGN(meta.trainedLength, jsonInteger(root, "trained_length", "meta"));
  HYB_ASSIGN(meta.layers, jsonInteger(root, "layers", "meta"));
  if (meta.vocabulary < 0 || meta.vocabulary > INT32_MAX)
    return failure(HYB_INVALID_FILE, "meta: 'vocab' is %lld",
                   static_cast<long long>(meta.vocabulary));
  return meta;
}

Result<ParameterTable> ParameterTable::parse(Bytes text) {
  HYB_ASSIGN(JsonDocument root, parseJsonObject(text, "params"));
  ParameterTable table;
  HYB_ASSIGN(table.elements, jsonInteger(root, "elements", "params"));
  HYB_ASSIGN(table.decayElements,
             jsonInteger(root, "decay_elements", "params"));
  // 2^40 elements are 4 TiB: nothing that is believed costs more than that.
  if (table.elements < 0 || table.elements > (int64_t(1) << 40) ||
      table.decayElements < 0 || table.decayElements > table.elements)
    return failure(HYB_INVALID_FILE,
                   "params: 'elements' is %lld and 'decay_elements' %lld",
                   static_cast<long long>(table.elements),
                   static_cast<long long>(table.decayElements));
  HYB_ASSIGN(const Json *list, jsonArray(root, "parameters", "params"));
  std::set<std::string> paths;
  for (size_t i = 0; i < list->size(); ++i) {
    HYB_ASSIGN(ParameterInfo parameter,
               readParameter((*list)[i], "parameter " + std::to_string(i)));
    if (!paths.insert(parameter.path).second)
      return failure(HYB_INVALID_FILE, "params: %s occurs twice",
                     parameter.path.c_str());
    table.parameters.push_back(std::move(parameter));
  }
  HYB_TRY(checkLayout(table));
  return table;
}

const ParameterInfo *ParameterTable::find(const std::string &path) const {
  for (const ParameterInfo &parameter : parameters)
    if (parameter.path == path)
      return &parameter;
  return nullptr;
}

int64_t ParameterTable::scalars() const {
  int64_t sum = 0;
  for (const ParameterInfo &parameter : parameters)
    sum += parameter.elements;
  return sum;
}

Result<StateTable> StateTable::parse(Bytes text) {
  HYB_ASSIGN(JsonDocument root, parseJsonObject(text, "states"));
  HYB_ASSIGN(const Json *list, jsonArray(root, "states", "states"));
  StateTable table;
  std::set<std::string> paths;
  for (size_t i = 0; i < list->size(); ++i) {
    const Json &value = (*list)[i];
    std::string where = "state " + std::to_string(i);
    StateInfo state;
    HYB_ASSIGN(state.path, jsonText(value, "path", where));
    HYB_ASSIGN(state.kind, jsonText(value, "kind", where));
    if (state.kind != "kv" && state.kind != "recurrent" && state.kind != "conv")
      return failure(HYB_INVALID_FILE, "%s: unknown kind '%.32s'",
                     where.c_str(), state.kind.c_str());
    HYB_ASSIGN(std::string type, jsonText(value, "type", where));
    HYB_ASSIGN(state.type, elementTypeNamed(type, where));
    if (!paths.insert(state.path).second)
      return failure(HYB_INVALID_FILE, "states: %s occurs twice",
                     state.path.c_str());
    HYB_ASSIGN(const Json *sizes, jsonArray(value, "sizes", where));
    for (const Json &size : *sizes) {
      HYB_ASSIGN(Expression expression, Expression::fromJson(size, where));
      state.sizes.push_back(std::move(expression));
    }
    if (state.sizes.empty() || state.sizes.size() > 8)
      return failure(HYB_INVALID_FILE, "%s: %zu sizes, expected 1 to 8",
                     where.c_str(), state.sizes.size());
    table.states.push_back(std::move(state));
  }
  return table;
}

} // namespace hyb::rt
