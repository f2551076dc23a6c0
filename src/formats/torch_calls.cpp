#include "formats/torch_calls.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace zeroth::formats::pickle {
namespace {

// Copies of a tensor's or storage's description must stay small, whatever a file says.
constexpr std::size_t kMostDimensions = 64;
constexpr std::size_t kLongestKey = 256;

constexpr std::string_view kOrderedDict = "collections.OrderedDict";
constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils._rebuild_parameter";

constexpr std::array<std::pair<std::string_view, DType>, 10> kStorages{{
    {"torch.FloatStorage", DType::kF32},
    {"torch.HalfStorage", DType::kF16},
    {"torch.BFloat16Storage", DType::kBF16},
    {"torch.DoubleStorage", DType::kF64},
    {"torch.LongStorage", DType::kI64},
    {"torch.IntStorage", DType::kI32},
    {"torch.ShortStorage", DType::kI16},
    {"torch.CharStorage", DType::kI8},
    {"torch.ByteStorage", DType::kU8},
    {"torch.BoolStorage", DType::kBool},
}};

std::optional<DType> storage_type(std::string_view name) {
  const auto* const found = std::find_if(
      kStorages.begin(), kStorages.end(), [&](const auto& entry) { return entry.first == name; });
  return found == kStorages.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::vector<std::int64_t>> integers(const Value& tuple) {
  std::vector<std::int64_t> numbers;
  for (const Value* item : tuple.items) {
    if (item->kind != Kind::kInteger) {
      return std::nullopt;
    }
    numbers.push_back(item->integer);
  }
  return tuple.kind == Kind::kTuple ? std::optional(std::move(numbers)) : std::nullopt;
}

// (storage, offset, size, stride, requires_grad, backward_hooks, ...)
bool rebuild_tensor(const Value& arguments, Value& result) {
  const auto& items = arguments.items;
  if (items.size() < 4 || items[0]->kind != Kind::kStorage || items[1]->kind != Kind::kInteger) {
    return false;
  }
  auto shape = integers(*items[2]);
  auto strides = integers(*items[3]);
  if (!shape || !strides || shape->size() != strides->size() || shape->size() > kMostDimensions) {
    return false;
  }
  result.kind = Kind::kTensor;
  result.tensor = items[0]->tensor;
  result.tensor.offset = items[1]->integer;
  result.tensor.shape = std::move(*shape);
  result.tensor.strides = std::move(*strides);
  return true;
}

// (tensor, requires_grad, backward_hooks)
bool rebuild_parameter(const Value& arguments, Value& result) {
  if (arguments.items.empty() || arguments.items[0]->kind != Kind::kTensor) {
    return false;
  }
  result.kind = Kind::kTensor;
  result.tensor = arguments.items[0]->tensor;
  return true;
}

}  // namespace

bool is_known_name(const std::string& name) {
  return name == kOrderedDict || name == kRebuildTensor || name == kRebuildParameter ||
         storage_type(name).has_value();
}

bool call(const Value& function, const Value& arguments, Value& result) {
  if (function.kind != Kind::kCallable || arguments.kind != Kind::kTuple) {
    return false;
  }
  if (function.text == kOrderedDict) {
    result.kind = Kind::kDict;
    return arguments.items.empty();
  }
  if (function.text == kRebuildTensor) {
    return rebuild_tensor(arguments, result);
  }
  return function.text == kRebuildParameter && rebuild_parameter(arguments, result);
}

bool load_storage(const Value& id, Value& result) {
  const auto& items = id.items;
  if (id.kind != Kind::kTuple || items.size() != 5 || items[0]->text != "storage" ||
      items[1]->kind != Kind::kCallable || items[2]->kind != Kind::kText ||
      items[4]->kind != Kind::kInteger) {
    return false;
  }
  const auto dtype = storage_type(items[1]->text);
  if (!dtype || items[2]->text.size() > kLongestKey) {
    return false;
  }
  result.kind = Kind::kStorage;
  result.tensor.dtype = *dtype;
  result.tensor.storage = items[2]->text;
  result.tensor.storage_elements = items[4]->integer;
  return true;
}

}  // namespace zeroth::formats::pickle
