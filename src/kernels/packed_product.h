#pragma once

#include "kernels/product.h"
#include <oneapi/dnnl/dnnl.hpp>

// Between product.cpp and packed_weight.cpp alone: what of oneDNN both need.
namespace zeroth::kernels {

[[nodiscard]] dnnl::engine& cpu_engine();

[[nodiscard]] dnnl::memory::data_type dnnl_type(at::ScalarType dtype);

// As oneDNN has it for this product: layouts that are `any` become those it reads fastest.
[[nodiscard]] dnnl::matmul::primitive_desc product_desc(const dnnl::memory::desc& a,
                                                        const dnnl::memory::desc& b,
                                                        const dnnl::memory::desc& out,
                                                        Accumulate mode = Accumulate::kOverwrite);

// a times a matrix of layout `b` at `data` into `out`, both of two dims; false where the product of
// these rows, threads and types would choose another layout for it.
[[nodiscard]] bool product_with_packed(const at::Tensor& out,
                                       const at::Tensor& a,
                                       const dnnl::memory::desc& b,
                                       void* data,
                                       Accumulate mode);

}  // namespace zeroth::kernels
