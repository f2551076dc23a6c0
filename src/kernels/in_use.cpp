#include "kernels/in_use.h"

#include "kernels/choice.h"
#include "kernels/product.h"
#include "kernels/simd/targets.h"
#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.hpp>

namespace zeroth::kernels {
namespace {

const char* name_of(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::ScalarType::BFloat16:
      return "bf16";
    case c10::ScalarType::Half:
      return "fp16";
    default:
      return "fp32";
  }
}

// Highway's kinds of processor by the instructions that they have.
std::string vector_instructions() {
  const std::string name = simd::targets().front().name;
  return name.starts_with("AVX3") ? "AVX-512"
         : name == "SSE4"         ? "SSE4"
         : name == "AVX2"         ? "AVX2"
                                  : "without vector instructions";
}

const char* product_instructions() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::avx512_core_amx:
      return "AMX";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "AVX-512 bf16";
    case dnnl::cpu_isa::avx512_core_vnni:
    case dnnl::cpu_isa::avx512_core:
      return "AVX-512";
    case dnnl::cpu_isa::avx2_vnni:
    case dnnl::cpu_isa::avx2:
      return "AVX2";
    case dnnl::cpu_isa::avx:
      return "AVX";
    default:
      return "SSE4";
  }
}

}  // namespace

std::string kernels_in_use(c10::ScalarType dtype) {
  const std::string operations =
      choice() == Choice::kReference
          ? "reference, each operation as LibTorch has it (--kernels reference)"
          : fmt::format("fast ({})", vector_instructions());
  const std::string products =
      has_product(dtype)
          ? fmt::format("{} products by oneDNN ({})", name_of(dtype), product_instructions())
          : fmt::format("{} products in fp32, since this processor has none of their own ({})",
                        name_of(dtype),
                        product_instructions());
  return operations + "; " + products;
}

}  // namespace zeroth::kernels
