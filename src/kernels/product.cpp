#include "kernels/product.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/check.h"
#include "base/phases.h"
#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>

namespace zeroth::kernels {
namespace {

using dnnl::memory;

constexpr std::size_t kMaxDims = 3;

// Everything that decides which primitive is needed.
struct ProductKey {
  std::array<std::int64_t, kMaxDims * 3> sizes{};
  std::array<std::int64_t, kMaxDims * 3> strides{};
  std::array<at::ScalarType, 3> dtypes{};
  Accumulate mode{};
  friend bool operator==(const ProductKey&, const ProductKey&) = default;
};

struct ProductKeyHash {
  std::size_t operator()(const ProductKey& key) const noexcept {
    std::size_t hash = 0;
    auto mix = [&hash](auto value) {
      hash = (hash ^ static_cast<std::size_t>(value)) * 0x9E3779B97F4A7C15U;
    };
    for (std::size_t i = 0; i < key.sizes.size(); ++i) {
      mix(key.sizes[i]);
      mix(key.strides[i]);
    }
    for (const auto dtype : key.dtypes) {
      mix(dtype);
    }
    mix(key.mode);
    return hash;
  }
};

memory::data_type dnnl_type(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return memory::data_type::f32;
    case at::kBFloat16:
      return memory::data_type::bf16;
    case at::kHalf:
      return memory::data_type::f16;
    default:
      break;
  }
  ZEROTH_CHECK(false, "a product of element type {}", static_cast<int>(dtype));
  return memory::data_type::undef;
}

memory::desc describe(const at::Tensor& tensor) {
  return {tensor.sizes().vec(), dnnl_type(tensor.scalar_type()), tensor.strides().vec()};
}

dnnl::engine& cpu_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

dnnl::matmul::primitive_desc product_desc(const memory::desc& a,
                                          const memory::desc& b,
                                          const memory::desc& out,
                                          Accumulate mode) {
  dnnl::primitive_attr attributes;
  if (mode == Accumulate::kAdd) {
    dnnl::post_ops after;
    after.append_sum(1.0F);
    attributes.set_post_ops(after);
  }
#if DNNL_VERSION_MAJOR >= 3
  return {cpu_engine(), a, b, out, attributes};
#else
  return {dnnl::matmul::desc(a, b, out), attributes, cpu_engine()};
#endif
}

// One product of fixed shapes, ready to run. `supported` is false where this processor has no such
// product.
struct Prepared {
  memory::desc a, b, out;
  dnnl::matmul primitive;
  bool supported = true;
};

Prepared make_product(const at::Tensor& a,
                      const at::Tensor& b,
                      const at::Tensor& out,
                      Accumulate mode) {
  Prepared product{describe(a), describe(b), describe(out), {}, true};
  try {
    product.primitive = dnnl::matmul(product_desc(product.a, product.b, product.out, mode));
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_unimplemented) {
      throw;
    }
    product.supported = false;
  }
  return product;
}

ProductKey key_of(const at::Tensor& a,
                  const at::Tensor& b,
                  const at::Tensor& out,
                  Accumulate mode) {
  ProductKey key{.mode = mode};
  std::size_t tensor_index = 0;
  for (const at::Tensor* tensor : {&a, &b, &out}) {
    for (std::int64_t dim = 0; dim < tensor->dim(); ++dim) {
      const std::size_t slot = tensor_index * kMaxDims + static_cast<std::size_t>(dim);
      key.sizes[slot] = tensor->size(dim) + 1;  // so that a missing dim differs from one of size 0
      key.strides[slot] = tensor->stride(dim);
    }
    key.dtypes[tensor_index++] = tensor->scalar_type();
  }
  return key;
}

// Primitives own their scratch space, so each thread keeps its own.
Prepared& product_for(const at::Tensor& a,
                      const at::Tensor& b,
                      const at::Tensor& out,
                      Accumulate mode) {
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

// Below this many operations a second thread costs more than it gives; the choice depends on the
// sizes alone, so the same product is always computed in the same way.
constexpr std::int64_t kOperationsPerThread = 4'000'000;

class ThreadsFor {
 public:
  explicit ThreadsFor(std::int64_t operations) : before_(omp_get_max_threads()) {
    const auto wanted =
        static_cast<int>(std::clamp<std::int64_t>(operations / kOperationsPerThread, 1, before_));
    omp_set_num_threads(wanted);
  }

  ThreadsFor(const ThreadsFor&) = delete;
  ThreadsFor& operator=(const ThreadsFor&) = delete;

  ~ThreadsFor() { omp_set_num_threads(before_); }

 private:
  int before_;
};

void run(Prepared& product, const at::Tensor& a, const at::Tensor& b, const at::Tensor& out) {
  static thread_local dnnl::stream stream(cpu_engine());
  auto wrap = [](const memory::desc& desc, const at::Tensor& tensor) {
    return memory(desc, cpu_engine(), tensor.data_ptr());
  };
  product.primitive.execute(stream,
                            {{DNNL_ARG_SRC, wrap(product.a, a)},
                             {DNNL_ARG_WEIGHTS, wrap(product.b, b)},
                             {DNNL_ARG_DST, wrap(product.out, out)}});
  stream.wait();
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
  const PhaseScope phase(Phase::kProducts);
  const ThreadsFor threads(2 * out.numel() * left.size(dims - 1));
  Prepared& prepared = product_for(left, right, out, mode);
  if (prepared.supported) {
    run(prepared, left, right, out);
  } else {
    put(out, product(left.to(at::kFloat), right.to(at::kFloat)), mode);
  }
}

}  // namespace zeroth::kernels
