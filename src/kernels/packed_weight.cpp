#include "kernels/packed_weight.h"

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "kernels/packed_product.h"
#include "kernels/parallel.h"

#include <ATen/ops/empty.h>

namespace zeroth::kernels {
namespace {

using dnnl::memory;

// Rows of the product that is asked for its layout: as training has them.
constexpr std::int64_t kAskedRows = 1024;

bool is_blocked(const memory::desc& layout) {
#if DNNL_VERSION_MAJOR >= 3
  return layout.get_format_kind() == memory::format_kind::blocked && layout.get_inner_nblks() > 0;
#else
  return layout.data.format_kind == dnnl_blocked &&
         layout.data.format_desc.blocking.inner_nblks > 0;
#endif
}

// The matrix that x or g is multiplied with, [inner, columns].
struct Operand {
  std::int64_t inner, columns;
  memory::desc plain;
};

Operand operand_of(const MatrixShape& shape, Side side) {
  const bool forward = side == Side::kForward;
  const std::int64_t inner = forward ? shape.in : shape.out;
  const std::int64_t columns = forward ? shape.out : shape.in;
  const memory::dims strides = forward ? memory::dims{1, shape.in} : memory::dims{shape.in, 1};
  return {inner, columns, {memory::dims{inner, columns}, dnnl_type(shape.dtype), strides}};
}

// As one thread would have it, so that ranks with other numbers of threads have the same.
std::optional<memory::desc> asked_layout(const MatrixShape& shape, Side side) {
  if (!has_product(shape.dtype) || shape.out == 0 || shape.in == 0) {
    return std::nullopt;
  }
  const ThreadsInUse one(1);
  const memory::data_type type = dnnl_type(shape.dtype);
  const Operand operand = operand_of(shape, side);
  const auto row_major = [&](std::int64_t columns) {
    return memory::desc(
        memory::dims{kAskedRows, columns}, type, memory::dims{columns, std::int64_t{1}});
  };
  const memory::desc any(
      memory::dims{operand.inner, operand.columns}, type, memory::format_tag::any);
  const memory::desc chosen =
      product_desc(row_major(operand.inner), any, row_major(operand.columns)).weights_desc();
  return is_blocked(chosen) ? std::optional(chosen) : std::nullopt;
}

// oneDNN is asked once for each shape: a model has many matrices of few shapes.
const std::optional<memory::desc>& layout_of(const MatrixShape& shape, Side side) {
  using Key = std::tuple<std::int64_t, std::int64_t, at::ScalarType, Side>;
  thread_local std::map<Key, std::optional<memory::desc>> known;
  const Key key(shape.out, shape.in, shape.dtype, side);
  const auto found = known.find(key);
  return found != known.end() ? found->second
                              : known.emplace(key, asked_layout(shape, side)).first->second;
}

std::int64_t aligned(std::size_t bytes) {
  constexpr std::int64_t kStep = PackedWeight::kAlignment;
  return (static_cast<std::int64_t>(bytes) + kStep - 1) / kStep * kStep;
}

std::size_t index_of(Side side) {
  return static_cast<std::size_t>(side);
}

}  // namespace

struct PackedWeight::Sides {
  struct Part {
    memory::desc layout;
    std::int64_t offset = 0;  // in the memory, in bytes
  };

  Sides(const MatrixShape& shape, Packing packing) {
    const std::array asked{packing != Packing::kNone, packing == Packing::kBoth};
    for (const Side side : {Side::kForward, Side::kInputGradient}) {
      if (const auto layout = asked[index_of(side)] ? layout_of(shape, side) : std::nullopt) {
        parts[index_of(side)] = Part{*layout, bytes};
        bytes += aligned(layout->get_size());
      }
    }
  }

  std::array<std::optional<Part>, 2> parts;
  std::int64_t bytes = 0;
};

std::int64_t PackedWeight::bytes_for(const MatrixShape& shape, Packing packing) {
  return Sides(shape, packing).bytes;
}

PackedWeight::PackedWeight(const MatrixShape& shape,
                           Packing packing,
                           std::shared_ptr<std::byte> memory)
    : sides_(std::make_unique<Sides>(shape, packing)), memory_(std::move(memory)), shape_(shape) {
  ZEROTH_CHECK_EQ(reinterpret_cast<std::uintptr_t>(memory_.get()) % kAlignment,
                  0U,
                  "where a packed weight begins");
}

PackedWeight::~PackedWeight() = default;

void PackedWeight::pack(const at::Tensor& weight) const {
  ZEROTH_CHECK(weight.is_contiguous() && weight.scalar_type() == shape_.dtype &&
                   weight.sizes() == at::IntArrayRef({shape_.out, shape_.in}),
               "a weight of another form than was to be packed");
  dnnl::stream stream(cpu_engine());
  for (const Side side : {Side::kForward, Side::kInputGradient}) {
    if (const auto& part = sides_->parts[index_of(side)]) {
      memory from(operand_of(shape_, side).plain, cpu_engine(), weight.data_ptr());
      memory to(part->layout, cpu_engine(), memory_.get() + part->offset);
      dnnl::reorder(from, to).execute(stream, from, to);
    }
  }
  stream.wait();
}

bool PackedWeight::serves_both() const {
  return sides_->parts.front() && sides_->parts.back();
}

bool PackedWeight::multiply(const at::Tensor& out,
                            const at::Tensor& a,
                            Side side,
                            Accumulate mode) const {
  const auto& part = sides_->parts[index_of(side)];
  return part && a.scalar_type() == shape_.dtype &&
         product_with_packed(out, a, part->layout, memory_.get() + part->offset, mode);
}

void product_into(const at::Tensor& out, const at::Tensor& a, const Weight& weight, Side side) {
  if (weight.packed != nullptr && weight.packed->multiply(out, a, side, Accumulate::kOverwrite)) {
    return;
  }
  product_into(out, a, side == Side::kForward ? weight.plain.t() : weight.plain);
}

at::Tensor product(const at::Tensor& a, const Weight& weight, Side side) {
  if (weight.packed == nullptr) {
    return product(a, side == Side::kForward ? weight.plain.t() : weight.plain);
  }
  const std::int64_t columns = weight.plain.size(side == Side::kForward ? 0 : 1);
  at::Tensor out = at::empty({a.size(0), columns}, a.options());
  product_into(out, a, weight, side);
  return out;
}

}  // namespace zeroth::kernels
