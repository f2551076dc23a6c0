#include "formats/model_config.h"
#include "formats/test_files.h"
#include "parity/runs.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// Where frozen weights lie changes no bit: mapped or converted once for all ranks, or a copy of
// each rank's own.
namespace zeroth::parity {
namespace {

namespace fs = std::filesystem;

// The reference model with its weights in bf16.
void write_in_bf16(const fs::path& folder) {
  const fs::path source = golden() / "transformers/llama3";
  fs::copy(source / "config.json", folder / "config.json");
  const formats::ModelWeights weights(source);
  std::vector<at::Tensor> values;
  std::vector<formats::TensorToWrite> tensors;
  for (const std::string& name : weights.names()) {
    const formats::TensorView& view = weights.at(name);
    auto* data = const_cast<std::byte*>(view.bytes.data());
    values.push_back(at::from_blob(data, view.shape, at::kFloat).to(at::kBFloat16));
    tensors.push_back(
        {.name = name,
         .dtype = formats::DType::kBF16,
         .shape = view.shape,
         .bytes = formats::ready(
             {static_cast<const std::byte*>(values.back().data_ptr()), values.back().nbytes()})});
  }
  formats::write_safetensors(folder / "model.safetensors", tensors, {});
}

constexpr auto kWeights = static_cast<std::size_t>(memory::Purpose::kWeights);

// Alone both ways cost the same; ranks that share count a part each.
void expect_same_but_for_memory(Case test) {
  SCOPED_TRACE(name_of(test) + " of " + test.folder.string());
  const Outcome shared = run(test);
  test.share_frozen = false;
  const Outcome apart = run(test);
  expect_same_bits(shared, apart);
  if (test.ranks == 1) {
    EXPECT_EQ(shared.at_peak[kWeights], apart.at_peak[kWeights]);
  } else {
    EXPECT_LT(shared.at_peak[kWeights] * 3, apart.at_peak[kWeights] * 2);
  }
}

TEST(ShareFrozen, ChangesNoBit) {
  const zeroth::testing::TemporaryFolder narrow;
  write_in_bf16(narrow.path());
  for (const int ranks : {1, 2, 3}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      Case test{.stage = 2, .ranks = ranks, .micro_rows = 2, .lora = true, .dtype = dtype};
      test.updates = 3;
      expect_same_but_for_memory(test);
      test.folder = narrow.path();
      expect_same_but_for_memory(test);
    }
  }
}

// Nor does where packed ones lie, nor the stage of what trains beside them.
TEST(ShareFrozen, ChangesNoBitOfPackedWeights) {
  for (const int ranks : {1, 2, 3}) {
    for (const kernels::Packing packing : {kernels::Packing::kForward, kernels::Packing::kBoth}) {
      Case test{.stage = 2,
                .ranks = ranks,
                .micro_rows = 2,
                .lora = true,
                .dtype = at::kBFloat16,
                .updates = 3,
                .packing = packing};
      expect_same_but_for_memory(test);
      Case other = test;
      other.stage = 3;
      expect_same_bits(test, other);
    }
  }
}

}  // namespace
}  // namespace zeroth::parity
