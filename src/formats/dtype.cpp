#include "formats/dtype.h"

#include <array>

namespace zeroth::formats {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::string_view torch_name;
  std::size_t bytes;
};

// In the order of the enumerators: row_of indexes by them.
constexpr std::array<Row, 15> kRows{{
    {DType::kF64, "F64", "float64", 8},
    {DType::kF32, "F32", "float32", 4},
    {DType::kF16, "F16", "float16", 2},
    {DType::kBF16, "BF16", "bfloat16", 2},
    {DType::kI64, "I64", "int64", 8},
    {DType::kI32, "I32", "int32", 4},
    {DType::kI16, "I16", "int16", 2},
    {DType::kI8, "I8", "int8", 1},
    {DType::kU64, "U64", "uint64", 8},
    {DType::kU32, "U32", "uint32", 4},
    {DType::kU16, "U16", "uint16", 2},
    {DType::kU8, "U8", "uint8", 1},
    {DType::kBool, "BOOL", "bool", 1},
    {DType::kF8E4M3, "F8_E4M3", "float8_e4m3fn", 1},
    {DType::kF8E5M2, "F8_E5M2", "float8_e5m2", 1},
}};

constexpr const Row& row_of(DType dtype) {
  return kRows[static_cast<std::size_t>(dtype)];
}

constexpr bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (static_cast<std::size_t>(kRows[i].dtype) != i) {
      return false;
    }
  }
  return true;
}

static_assert(rows_follow_the_enum());

}  // namespace

std::size_t element_bytes(DType dtype) noexcept {
  return row_of(dtype).bytes;
}

std::string_view dtype_name(DType dtype) noexcept {
  return row_of(dtype).name;
}

std::string_view torch_dtype_name(DType dtype) noexcept {
  return row_of(dtype).torch_name;
}

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (const Row& row : kRows) {
    if (row.name == name) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_torch_name(std::string_view name) noexcept {
  constexpr std::string_view kPrefix = "torch.";
  if (name.starts_with(kPrefix)) {
    name.remove_prefix(kPrefix.size());
  }
  for (const Row& row : kRows) {
    if (row.torch_name == name) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

bool is_weight_dtype(DType dtype) noexcept {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

}  // namespace zeroth::formats
