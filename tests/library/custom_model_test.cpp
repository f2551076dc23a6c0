#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "process.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

// The example program on its ranks, against the same training written out here with LibTorch's
// autograd alone: one process, one batch an update, AdamW by its formulas. No engine takes part.
// tests/golden/make_custom_model.py is a second reference, for where there is PyTorch.
namespace zeroth::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kBytes = 256;
constexpr std::int64_t kChannels = 32;
constexpr std::int64_t kKernel = 3;
constexpr std::int64_t kRowBytes = 64;
constexpr std::int64_t kStride = 37;
constexpr std::int64_t kRows = 16;
constexpr double kRate = 3e-3;
constexpr double kDecay = 0.01;

const fs::path kText = fs::path(ZEROTH_SOURCE_DIR) / "tests/golden/custom_model.txt";

struct Trainee {
  Trainee() {
    add({kBytes, kChannels});
    for (int layer = 0; layer < 3; ++layer) {
      add({kChannels, kChannels, kKernel});
      add({kChannels});
    }
    add({kBytes, kChannels});
    add({kBytes});
  }

  void add(const std::vector<std::int64_t>& sizes) {
    std::int64_t numel = 1;
    for (const std::int64_t size : sizes) {
      numel *= size;
    }
    const at::Tensor index = at::arange(count, count + numel, at::kDouble);
    values.push_back(
        (at::sin(index * index + 1) * 0.1).to(at::kFloat).view(sizes).requires_grad_(true));
    first.push_back(at::zeros(sizes));
    second.push_back(at::zeros(sizes));
    count += numel;
  }

  [[nodiscard]] at::Tensor loss(const at::Tensor& inputs, const at::Tensor& targets) const {
    at::Tensor x = at::embedding(values[0], inputs).transpose(1, 2);
    std::int64_t dilation = 1;
    for (std::size_t layer = 0; layer < 3; ++layer) {
      const at::Tensor padded = at::constant_pad_nd(x, {dilation * (kKernel - 1), 0});
      const at::Tensor seen = at::conv1d(padded,
                                         values[1 + 2 * layer],
                                         values[2 + 2 * layer],
                                         /*stride=*/at::IntArrayRef{1},
                                         /*padding=*/at::IntArrayRef{0},
                                         dilation);
      x = x + at::silu(seen);
      dilation *= 3;
    }
    const at::Tensor logits = at::linear(x.transpose(1, 2), values[7], values[8]);
    return at::cross_entropy_loss(logits.reshape({-1, kBytes}), targets.reshape({-1}));
  }

  // One update of AdamW with clipping to 1; gives the norm before clipping.
  double update(const std::vector<at::Tensor>& grads, int step) {
    double squares = 0;
    for (const at::Tensor& grad : grads) {
      squares += grad.to(at::kDouble).square().sum().item<double>();
    }
    const double norm = std::sqrt(squares);
    const double scale = std::min(1.0, 1.0 / (norm + 1e-6));
    const c10::NoGradGuard no_grad;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const at::Tensor grad = grads[i] * scale;
      first[i] = first[i] * 0.9 + grad * 0.1;
      second[i] = second[i] * 0.999 + grad.square() * 0.001;
      if (values[i].dim() > 1) {
        values[i].mul_(1 - kRate * kDecay);
      }
      const at::Tensor mean = first[i] / (1 - std::pow(0.9, step));
      const at::Tensor deviation = (second[i] / (1 - std::pow(0.999, step))).sqrt() + 1e-8;
      values[i].sub_(mean / deviation * kRate);
    }
    return norm;
  }

  std::int64_t count = 0;
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> first;
  std::vector<at::Tensor> second;
};

struct Curve {
  std::vector<double> losses;
  std::vector<double> norms;
};

Curve by_autograd_alone(int updates) {
  std::ifstream stream(kText, std::ios::binary);
  std::vector<std::int64_t> bytes;
  for (std::istreambuf_iterator<char> byte(stream), end; byte != end; ++byte) {
    bytes.push_back(static_cast<unsigned char>(*byte));
  }
  const at::Tensor all = at::tensor(bytes);
  const auto starts = static_cast<std::int64_t>(bytes.size()) - kRowBytes;
  Trainee trainee;
  Curve curve;
  for (int update = 0; update < updates; ++update) {
    std::vector<at::Tensor> inputs;
    std::vector<at::Tensor> targets;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const std::int64_t start = (update * kRows + row) * kStride % starts;
      inputs.push_back(all.narrow(0, start, kRowBytes));
      targets.push_back(all.narrow(0, start + 1, kRowBytes));
    }
    const at::Tensor loss = trainee.loss(at::stack(inputs), at::stack(targets));
    curve.norms.push_back(
        trainee.update(torch::autograd::grad({loss}, trainee.values), update + 1));
    curve.losses.push_back(loss.item<double>());
  }
  return curve;
}

std::string settings(int stage) {
  return R"({"train_batch_size": 16, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0,
    "zero_optimization": {"stage": )" +
         std::to_string(stage) + R"(},
    "optimizer": {"type": "AdamW", "params": {"lr": 3e-3, "weight_decay": 0.01}}})";
}

Outcome train(int ranks, const fs::path& settings_file, int updates) {
  return run({.arguments = {ZEROTH_PROGRAM,
                            "launch",
                            "--ranks",
                            std::to_string(ranks),
                            "--",
                            ZEROTH_EXAMPLE,
                            kText.string(),
                            settings_file.string(),
                            std::to_string(updates)},
              .input = "",
              .environment = {},
              .working_folder = {}});
}

// "update 1 loss 5.536732 grad_norm 0.254"
Curve printed_by(const Outcome& outcome) {
  Curve curve;
  for (const std::string& line : split(outcome.output, '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    if (words.size() == 6 && words[0] == "update") {
      curve.losses.push_back(std::stod(words[3]));
      curve.norms.push_back(std::stod(words[5]));
    }
  }
  return curve;
}

void expect_near(const Curve& curve, const Curve& expected) {
  ASSERT_EQ(curve.losses.size(), expected.losses.size());
  for (std::size_t update = 0; update < expected.losses.size(); ++update) {
    EXPECT_NEAR(curve.losses[update], expected.losses[update], 2e-5) << update;
    EXPECT_NEAR(curve.norms[update], expected.norms[update], 2e-4 * expected.norms[update])
        << update;
  }
}

TEST(CustomModel, LearnsAsAutogradAloneDoes) {
  constexpr int kUpdates = 12;
  const Curve expected = by_autograd_alone(kUpdates);
  EXPECT_LT(expected.losses.back(), expected.losses.front() - 0.3);
  const TemporaryFolder folder;
  for (const auto& [ranks, stage] : std::map<int, int>{{1, 0}, {2, 2}, {4, 3}}) {
    const fs::path file = folder.path() / "ds.json";
    write_file_atomically(file, settings(stage));
    const Outcome outcome = train(ranks, file, kUpdates);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    expect_near(printed_by(outcome), expected);
  }
}

TEST(CustomModel, TheSettingsOfTheExampleAreThoseOfThisTest) {
  const Outcome outcome = train(2, fs::path(ZEROTH_SOURCE_DIR) / "examples/custom_model.json", 2);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  expect_near(printed_by(outcome), by_autograd_alone(2));
}

// What all ranks meet is told once, with the code of its kind.
TEST(CustomModel, AnErrorOfTheProgramIsToldOnce) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "ds.json";
  write_file_atomically(file, R"({"train_batch_size": 16, "zero_optimisation": {"stage": 2}})");
  const Outcome outcome = train(2, file, 1);
  EXPECT_EQ(outcome.exit_code, 2);
  const std::string message = "unknown key \"zero_optimisation\"";
  const auto at = outcome.errors.find(message);
  ASSERT_NE(at, std::string::npos) << outcome.errors;
  EXPECT_EQ(outcome.errors.find(message, at + 1), std::string::npos) << outcome.errors;
}

}  // namespace
}  // namespace zeroth::testing
