#include "kernels/product.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <unordered_map>

#include "base/check.h"
#include "base/phases.h"
#include "kernels/packed_product.h"
#include "kernels/parallel.h"
#include <omp.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>

namespace zeroth::kernels {

dnnl::memory::data_type dnnl_type(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return dnnl::memory::data_type::f32;
    case at::kBFloat16:
      return dnnl::memory::data_type::bf16;
    case at::kHalf:
      return dnnl::memory::data_type::f16;
    default:
      break;
  }
  ZEROTH_CHECK(false, "a product of element type {}", static_cast<int>(dtype));
  return dnnl::memory::data_type::undef;
}

dnnl::engine& cpu_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::matmul::primitive_desc product_desc(const dnnl::memory::desc& a,
                                          const dnnl::memory::desc& b,
                                          const dnnl::memory::desc& out,
                                          Accumulate mode) {
  dnnl::primitive_attr attributes;
  if (mode == Accumulate::kAdd) {
    dnnl::post_ops adds;
    adds.append_sum();
    attributes.set_post_ops(adds);
  }
#if DNNL_VERSION_MAJOR >= 3
  return {cpu_engine(), a, b, out, attributes};
#else
  return {dnnl::matmul::desc(a, b, out), attributes, cpu_engine()};
#endif
}

namespace {

using dnnl::memory;

constexpr std::size_t kMaxDims = 3;

// One tensor of a product, as oneDNN has to know it.
struct Operand {
  void* data = nullptr;
  std::array<std::int64_t, kMaxDims> sizes{};
  std::array<std::int64_t, kMaxDims> strides{};
  std::size_t num_dims = 0;
  at::ScalarType dtype = at::kFloat;
  const memory::desc* packed = nullptr;  // in place of the strides
};

// Everything that decides which primitive is needed.
struct ProductKey {
  std::array<std::int64_t, kMaxDims * 3> sizes{};
  std::array<std::int64_t, kMaxDims * 3> strides{};
  std::array<at::ScalarType, 3> dtypes{};
  Accumulate mode{};
  int threads = 1;  // a primitive divides its work when it is made
  friend bool operator==(const ProductKey&, const ProductKey&) = default;
};

struct ProductKeyHash {
  std::size_t operator()(const ProductKey& key) const noexcept {
    std::size_t hash = 0;
    auto mix = [&hash](auto value) {
      hash = (hash ^ static_cast<std::size_t>(value)) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 32U;
    };
    for (std::size_t i = 0; i < key.sizes.size(); ++i) {
      mix(key.sizes[i]);
      mix(key.strides[i]);
    }
    for (const auto dtype : key.dtypes) {
      mix(dtype);
    }
    mix(key.mode);
    mix(key.threads);
    return hash;
  }
};

memory::desc describe(const Operand& operand) {
  if (operand.packed != nullptr) {
    return *operand.packed;
  }
  const auto num_dims = static_cast<std::ptrdiff_t>(operand.num_dims);
  return {memory::dims(operand.sizes.begin(), operand.sizes.begin() + num_dims),
          dnnl_type(operand.dtype),
          memory::dims(operand.strides.begin(), operand.strides.begin() + num_dims)};
}

Operand operand_of(const at::Tensor& tensor) {
  Operand operand{.data = tensor.data_ptr(),
                  .num_dims = static_cast<std::size_t>(tensor.dim()),
                  .dtype = tensor.scalar_type()};
  std::copy(tensor.sizes().begin(), tensor.sizes().end(), operand.sizes.begin());
  std::copy(tensor.strides().begin(), tensor.strides().end(), operand.strides.begin());
  return operand;
}

Operand operand_of(const Matrix& matrix) {
  return {.data = matrix.data,
          .sizes = {matrix.rows, matrix.columns},
          .strides = {matrix.row_stride, matrix.column_stride},
          .num_dims = 2,
          .dtype = matrix.dtype};
}

// One product of fixed shapes, ready to run. `supported` is false where this processor has no such
// product.
struct Prepared {
  memory::desc a, b, out;
  dnnl::matmul primitive;
  bool supported = true;
};

// Whether this product would lay its second operand out as it lies.
bool reads_best(const Prepared& product, const Operand& b, Accumulate mode) {
  const memory::desc any(
      memory::dims{b.sizes[0], b.sizes[1]}, dnnl_type(b.dtype), memory::format_tag::any);
  return product_desc(product.a, any, product.out, mode).weights_desc() == product.b;
}

Prepared make_product(const Operand& a, const Operand& b, const Operand& out, Accumulate mode) {
  Prepared product{describe(a), describe(b), describe(out), {}, true};
  try {
    if (b.packed != nullptr && !reads_best(product, b, mode)) {
      product.supported = false;
      return product;
    }
    product.primitive = dnnl::matmul(product_desc(product.a, product.b, product.out, mode));
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) {
      throw;
    }
    product.supported = false;
  }
  return product;
}

ProductKey key_of(const Operand& a, const Operand& b, const Operand& out, Accumulate mode) {
  constexpr std::int64_t kPacked = -1;
  ProductKey key{.mode = mode, .threads = omp_get_max_threads()};
  std::size_t index = 0;
  for (const Operand* operand : {&a, &b, &out}) {
    for (std::size_t dim = 0; dim < operand->num_dims; ++dim) {
      const std::size_t slot = index * kMaxDims + dim;
      key.sizes[slot] =
          operand->sizes[dim] + 1;  // so that a missing dim differs from one of size 0
      // A type and a shape have one layout in which they are packed.
      key.strides[slot] = operand->packed != nullptr ? kPacked : operand->strides[dim];
    }
    key.dtypes[index++] = operand->dtype;
  }
  return key;
}

// Primitives own their scratch space, so each thread keeps its own.
Prepared& product_for(const Operand& a, const Operand& b, const Operand& out, Accumulate mode) {
  constexpr std::size_t kMaxProducts =
      2048;  // rows of ever new lengths must not grow it without end
  thread_local std::unordered_map<ProductKey, Prepared, ProductKeyHash> products;
  const ProductKey key = key_of(a, b, out, mode);
  if (const auto found = products.find(key); found != products.end()) {
    return found->second;
  }
  if (products.size() >= kMaxProducts) {
    products.clear();
  }
  return products.emplace(key, make_product(a, b, out, mode)).first->second;
}

// oneDNN wants rows or columns that are contiguous; size-1 dims may carry any stride.
at::Tensor as_operand(const at::Tensor& tensor) {
  const std::int64_t dims = tensor.dim();
  const bool row_major =
      tensor.stride(dims - 1) == 1 && tensor.stride(dims - 2) >= tensor.size(dims - 1);
  const bool column_major =
      tensor.stride(dims - 2) == 1 && tensor.stride(dims - 1) >= tensor.size(dims - 2);
  return row_major || column_major ? tensor : tensor.contiguous();
}

void run(Prepared& product, const Operand& a, const Operand& b, const Operand& out) {
  static thread_local dnnl::stream stream(cpu_engine());
  auto wrap = [](const memory::desc& desc, const Operand& operand) {
    return memory(desc, cpu_engine(), operand.data);
  };
  product.primitive.execute(stream,
                            {{DNNL_ARG_SRC, wrap(product.a, a)},
                             {DNNL_ARG_WEIGHTS, wrap(product.b, b)},
                             {DNNL_ARG_DST, wrap(product.out, out)}});
  stream.wait();
}

std::int64_t operations(const Operand& out, const Operand& a) {
  std::int64_t operations = 2 * a.sizes[a.num_dims - 1];
  for (std::size_t dim = 0; dim < out.num_dims; ++dim) {
    operations *= out.sizes[dim];
  }
  return operations;
}

// `count` rows or columns of it.
Operand part_of(const Operand& whole, std::size_t dim, std::int64_t first, std::int64_t count) {
  Operand part = whole;
  const auto element = static_cast<std::int64_t>(at::elementSize(whole.dtype));
  part.data = static_cast<std::byte*>(whole.data) + first * whole.strides[dim] * element;
  part.sizes[dim] = count;
  return part;
}

// Below this many rows or columns a thread spends more on reading the other operand than it saves.
constexpr std::int64_t kLeastPart = 128;
constexpr std::int64_t kPartGrain = 32;

// Which of the result's dims goes to threads in parts, each part a product on one thread: none
// where parts would be small. Where oneDNN divides a product of plain operands, its threads first
// lay one out together and wait for each other; with a packed one they have nothing to wait for.
std::optional<std::size_t> divided_dim(const Operand& b, const Operand& out, int threads) {
  if (threads == 1 || out.num_dims != 2 || b.packed != nullptr) {
    return std::nullopt;
  }
  for (const std::size_t dim : {0, 1}) {
    if (out.sizes[dim] >= threads * kLeastPart) {
      return dim;
    }
  }
  return std::nullopt;
}

bool multiply_whole(const Operand& a, const Operand& b, const Operand& out, Accumulate mode) {
  Prepared& prepared = product_for(a, b, out, mode);
  if (prepared.supported) {
    run(prepared, a, b, out);
  }
  return prepared.supported;
}

// False, and nothing of use in `out`, where this processor has no such product.
bool multiply(const Operand& a, const Operand& b, const Operand& out, Accumulate mode) {
  const PhaseScope phase(Phase::kProducts);
  const ThreadsInUse threads(threads_for(operations(out, a)));
  const auto dim = divided_dim(b, out, omp_get_max_threads());
  if (!dim) {
    return multiply_whole(a, b, out, mode);
  }
  const std::int64_t size = out.sizes[*dim];
  std::atomic<bool> supported = true;
  for_each_range(
      (size + kPartGrain - 1) / kPartGrain, 1, [&](std::int64_t first, std::int64_t last) {
        const std::int64_t begin = first * kPartGrain;
        const std::int64_t count = std::min(size, last * kPartGrain) - begin;
        const bool here = multiply_whole(*dim == 0 ? part_of(a, 0, begin, count) : a,
                                         *dim == 1 ? part_of(b, 1, begin, count) : b,
                                         part_of(out, *dim, begin, count),
                                         mode);
        supported = supported && here;
      });
  return supported;
}

void put(const at::Tensor& out, const at::Tensor& result, Accumulate mode) {
  if (mode == Accumulate::kAdd) {
    out.add_(result);
  } else {
    out.copy_(result);
  }
}

}  // namespace

at::Tensor product(const at::Tensor& a,
                   const at::Tensor& b,
                   std::optional<at::ScalarType> out_dtype) {
  const std::int64_t dims = a.dim();
  ZEROTH_CHECK(
      dims == b.dim() && (dims == 2 || dims == 3), "product of {} and {} dims", dims, b.dim());
  if (a.scalar_type() == at::kDouble) {
    return at::matmul(a, b);
  }
  std::vector<std::int64_t> shape = a.sizes().vec();
  shape.back() = b.size(dims - 1);
  at::Tensor out = at::empty(shape, a.options().dtype(out_dtype.value_or(a.scalar_type())));
  product_into(out, a, b);
  return out;
}

void product_into(const at::Tensor& out,
                  const at::Tensor& a,
                  const at::Tensor& b,
                  Accumulate mode) {
  const std::int64_t dims = a.dim();
  ZEROTH_CHECK_EQ(a.size(dims - 1), b.size(dims - 2), "inner sizes of a product");
  ZEROTH_CHECK(out.size(dims - 2) == a.size(dims - 2) && out.size(dims - 1) == b.size(dims - 1),
               "outer sizes of a product");
  if (out.numel() == 0) {
    return;
  }
  if (a.scalar_type() == at::kDouble) {
    put(out, at::matmul(a, b), mode);
    return;
  }
  const at::Tensor left = as_operand(a);
  const at::Tensor right = as_operand(b);
  if (!multiply(operand_of(left), operand_of(right), operand_of(out), mode)) {
    put(out, product(left.to(at::kFloat), right.to(at::kFloat)), mode);
  }
}

void product_into(const Matrix& out, const Matrix& a, const Matrix& b, Accumulate mode) {
  ZEROTH_CHECK_EQ(a.columns, b.rows, "inner sizes of a product");
  ZEROTH_CHECK(out.rows == a.rows && out.columns == b.columns, "the size of a product's result");
  ZEROTH_CHECK(multiply_whole(operand_of(a), operand_of(b), operand_of(out), mode),
               "no product of element type {}",
               static_cast<int>(a.dtype));
}

bool product_with_packed(const at::Tensor& out,
                         const at::Tensor& a,
                         const dnnl::memory::desc& b,
                         void* data,
                         Accumulate mode) {
  if (out.numel() == 0) {
    return true;
  }
  const at::Tensor left = as_operand(a);
  const Operand packed{.data = data,
                       .sizes = {left.size(1), out.size(1)},
                       .num_dims = 2,
                       .dtype = left.scalar_type(),
                       .packed = &b};
  return multiply(operand_of(left), packed, operand_of(out), mode);
}

bool has_product(at::ScalarType dtype) {
  constexpr std::int64_t kSize = 16;
  const Operand any{.sizes = {kSize, kSize}, .strides = {kSize, 1}, .num_dims = 2, .dtype = dtype};
  Operand wide = any;
  wide.dtype = at::kFloat;
  return product_for(any, any, wide, Accumulate::kAdd).supported;
}

}  // namespace zeroth::kernels
