#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/choice.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

// For tests: the fast version of an operation against its reference.
namespace zeroth::kernels {

using Tensors = std::vector<at::Tensor>;
using Operation = std::function<Tensors(const Tensors&)>;

// What an operation gives, then the gradients of the inputs that are numbers.
inline Tensors values_and_gradients(const Operation& operation,
                                    const Tensors& inputs,
                                    at::ScalarType dtype) {
  Tensors leaves;
  for (const at::Tensor& input : inputs) {
    leaves.push_back(input.detach().to(dtype, false, true).requires_grad_(true));
  }
  Tensors result = operation(leaves);
  Tensors grads;
  at::manual_seed(5);
  for (const at::Tensor& output : result) {
    // Numbers that every type holds.
    grads.push_back(
        at::randn(output.sizes()).to(at::kBFloat16).to(at::kHalf).to(output.scalar_type()));
  }
  const Tensors of_inputs = torch::autograd::grad(result, leaves, grads);
  for (at::Tensor& output : result) {
    output = output.detach();
  }
  result.insert(result.end(), of_inputs.begin(), of_inputs.end());
  return result;
}

inline double error_against(const at::Tensor& value, const at::Tensor& wide) {
  if (wide.numel() == 0) {
    return 0;
  }
  return ((value.to(at::kDouble) - wide).norm() / (wide.norm() + 1e-30)).item<double>();
}

// Both versions in `dtype` against fp64: fp32 within 2e-6, the types of 16 bits no further off than
// one and a half times the reference, or than one rounding.
inline void expect_versions_agree(const Operation& operation,
                                  const Tensors& inputs,
                                  at::ScalarType dtype) {
  Tensors rounded;
  for (const at::Tensor& input : inputs) {
    rounded.push_back(input.to(dtype));
  }
  const Tensors wide = values_and_gradients(operation, rounded, at::kDouble);
  const Tensors fast = values_and_gradients(operation, rounded, dtype);
  const ChoiceScope scope(Choice::kReference);
  const Tensors reference = values_and_gradients(operation, rounded, dtype);
  const double one_rounding = dtype == at::kHalf ? 0x1p-11 : 0x1p-8;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    ASSERT_EQ(fast[i].sizes(), wide[i].sizes()) << "tensor " << i;
    ASSERT_EQ(fast[i].scalar_type(), reference[i].scalar_type()) << "tensor " << i;
    const double error = error_against(fast[i], wide[i]);
    const double bound = dtype == at::kFloat
                             ? 2e-6
                             : std::max(1.5 * error_against(reference[i], wide[i]), one_rounding);
    EXPECT_LE(error, bound) << "tensor " << i << " of shape " << wide[i].sizes();
  }
}

inline std::string name_of(at::ScalarType dtype) {
  return dtype == at::kFloat ? "fp32" : dtype == at::kHalf ? "fp16" : "bf16";
}

class BothVersions : public testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override { at::manual_seed(3); }
};

}  // namespace zeroth::kernels
