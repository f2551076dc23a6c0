// A network of one's own: a model of characters made of causal convolutions, trained on any text.
//
//   zeroth launch --ranks 2 -- build/release/examples/custom_model README.md
//   build/release/examples/custom_model README.md examples/custom_model.json 50   (one rank)
//
// Prints the loss of every update, in nats per byte.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/padding.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include "zeroth/torch_module.h"
#include "zeroth/zeroth.h"

namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;

// B: rows, T: bytes of a row, C: channels.
constexpr std::int64_t kBytes = 256;
constexpr std::int64_t kChannels = 32;
constexpr std::int64_t kKernel = 3;
constexpr std::int64_t kRowBytes = 64;

// Each byte becomes a vector; the layers then work on [B, C, T].
struct EmbedImpl : nn::Module {
  EmbedImpl() : table(register_module("table", nn::Embedding(kBytes, kChannels))) {}

  at::Tensor forward(const at::Tensor& bytes_BT) { return table(bytes_BT).transpose(1, 2); }

  nn::Embedding table;
};

TORCH_MODULE(Embed);

// A convolution that sees this byte and those before it, added to its input.
struct CausalBlockImpl : nn::Module {
  explicit CausalBlockImpl(std::int64_t dilation)
      : conv(register_module(
            "conv",
            nn::Conv1d(nn::Conv1dOptions(kChannels, kChannels, kKernel).dilation(dilation)))),
        padding(dilation * (kKernel - 1)) {}

  at::Tensor forward(const at::Tensor& x_BCT) {
    return x_BCT + F::silu(conv(F::pad(x_BCT, F::PadFuncOptions({padding, 0}))));
  }

  nn::Conv1d conv;
  std::int64_t padding;
};

TORCH_MODULE(CausalBlock);

struct HeadImpl : nn::Module {
  HeadImpl() : linear(register_module("linear", nn::Linear(kChannels, kBytes))) {}

  at::Tensor forward(const at::Tensor& x_BCT) { return linear(x_BCT.transpose(1, 2)); }

  nn::Linear linear;
};

TORCH_MODULE(Head);

// Each child with parameters becomes a unit: gathered, computed with, and released by itself.
nn::Sequential make_network() {
  nn::Sequential network;
  network->push_back("embed", Embed());
  for (const std::int64_t dilation : {1, 3, 9}) {
    network->push_back("block" + std::to_string(dilation), CausalBlock(dilation));
  }
  network->push_back("head", Head());
  return network;
}

// First values by a rule instead of by chance, so that tests/golden/make_custom_model.py can start
// from the same ones.
void set_first_values(nn::Module& network) {
  const c10::NoGradGuard no_grad;
  std::int64_t count = 0;
  for (at::Tensor& parameter : network.parameters()) {
    const at::Tensor index = at::arange(count, count + parameter.numel(), at::kDouble);
    parameter.copy_((at::sin(index * index + 1) * 0.1).view_as(parameter));
    count += parameter.numel();
  }
}

// Every byte is predicted from those before it: a sum over targets, and their number.
zeroth::Loss next_byte_loss(const at::Tensor& logits_BTV, const zeroth::Batch& batch) {
  const at::Tensor targets = batch.tensors[1].reshape({-1});
  return {.sum = at::cross_entropy_loss(
              logits_BTV.reshape({-1, kBytes}), targets, /*weight=*/{}, at::Reduction::Sum),
          .weight = targets.numel()};
}

std::vector<std::int64_t> read_bytes(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  if (static_cast<std::int64_t>(text.size()) <= kRowBytes) {
    throw zeroth::Error(zeroth::ErrorKind::kData,
                        file + " is not there or too short: " + std::to_string(kRowBytes + 1) +
                            " bytes are needed");
  }
  std::vector<std::int64_t> bytes;
  for (const char c : text) {
    bytes.push_back(static_cast<unsigned char>(c));
  }
  return bytes;
}

// Rows [first, first + count) of an endless list: row r begins at byte 37 r, round and round.
zeroth::Batch make_batch(const std::vector<std::int64_t>& bytes,
                         std::int64_t first,
                         std::int64_t count) {
  constexpr std::int64_t kStride = 37;
  const auto starts = static_cast<std::int64_t>(bytes.size()) - kRowBytes;
  const at::Tensor all = at::tensor(bytes);
  std::vector<at::Tensor> inputs;
  std::vector<at::Tensor> targets;
  for (std::int64_t row = first; row < first + count; ++row) {
    const std::int64_t start = row * kStride % starts;
    inputs.push_back(all.narrow(0, start, kRowBytes));
    targets.push_back(all.narrow(0, start + 1, kRowBytes));
  }
  return {.tensors = {at::stack(inputs), at::stack(targets)}};
}

void train(const zeroth::Runtime& runtime,
           const std::string& text_file,
           const std::string& settings,
           std::int64_t updates) {
  const std::vector<std::int64_t> bytes = read_bytes(text_file);
  nn::Sequential network = make_network();
  set_first_values(*network);

  // No weight decay for biases: the library's user decides.
  zeroth::Engine engine = zeroth::initialize(runtime,
                                             zeroth::model_of(network, next_byte_loss),
                                             zeroth::Config::from_file(settings),
                                             {{.names = {"*.bias"}, .weight_decay = 0.0}});
  runtime.print(engine.start_table());

  const std::int64_t rows = engine.micro_batch_rows();
  std::int64_t next_row = runtime.rank() * rows;
  for (std::int64_t update = 0; update < updates;) {
    const zeroth::StepLoss loss = engine.forward(make_batch(bytes, next_row, rows));
    engine.backward(loss);
    const zeroth::StepReport report = engine.step();  // after every micro-batch: it counts
    next_row += rows * runtime.size();
    if (report.window_finished) {
      runtime.print("update " + std::to_string(report.step) + " loss " +
                    std::to_string(report.loss) + " grad_norm " + std::to_string(report.grad_norm));
      ++update;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  return zeroth::run([&](zeroth::Runtime& runtime) {
    if (argc < 2) {
      throw zeroth::Error(zeroth::ErrorKind::kUsage, "custom_model TEXT [SETTINGS.json [UPDATES]]");
    }
    train(runtime,
          argv[1],
          argc > 2 ? argv[2] : "examples/custom_model.json",
          argc > 3 ? std::atoll(argv[3]) : 30);
  });
}
