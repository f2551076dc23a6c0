#include "library/unit_adapter.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "library/tensor_error.h"
#include <fmt/format.h>

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

namespace zeroth::library {
namespace {

at::Generator generator() {
  return at::globalContext().defaultGenerator(at::kCPU);
}

// LibTorch's generator starts from a seed of ours, and goes on as before afterwards.
class RandomScope {
 public:
  explicit RandomScope(std::uint64_t seed) : before_(generator().get_state()) {
    generator().set_current_seed(seed);
  }

  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

  ~RandomScope() { generator().set_state(before_); }

 private:
  at::Tensor before_;
};

std::string advice_on(const std::string& text, bool gathers) {
  if (text.find("in-place operation") != std::string::npos) {
    return "\n  A unit may not change its input in place: that is the output of the unit before "
           "it.";
  }
  if (text.find("not implemented for 'Half'") != std::string::npos) {
    return "\n  This LibTorch does not compute that in fp16 on a CPU: use bf16, or fp32.";
  }
  return gathers ? "\n  If it reads a parameter of another unit: list it in Unit::borrows. At ZeRO "
                   "stage 3 a parameter is empty while its unit does not compute."
                 : "";
}

// What a program's own code throws, with the place.
template <typename Work>
auto named(const std::string& what, bool gathers, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw Error(kind_of(text), fmt::format("{}: {}{}", what, text, advice_on(text, gathers)));
  }
}

}  // namespace

UnitAdapter::UnitAdapter(zeroth::Unit unit,
                         std::int64_t index,
                         LossOf loss,
                         std::shared_ptr<const PassState> state)
    : models::Unit(unit.name),
      unit_(std::move(unit)),
      index_(index),
      loss_(std::move(loss)),
      state_(std::move(state)) {
  for (const zeroth::Parameter& parameter : unit_.parameters) {
    parameters_.push_back(
        {.name = parameter.name, .value = parameter.value, .trainable = parameter.trainable});
  }
}

at::Tensor UnitAdapter::forward(const models::ForwardContext& context, const at::Tensor& input) {
  std::optional<RandomScope> random;
  if (context.training) {
    random.emplace(random_seed(context));
  }
  const at::Tensor output = output_of(input, context.training);
  return loss_ && !state_->wants_output ? loss_of(output, context) : output;
}

std::uint64_t UnitAdapter::random_seed(const models::ForwardContext& context) const noexcept {
  const auto where = static_cast<std::uint64_t>(state_->micro_step) << 40 |
                     static_cast<std::uint64_t>(state_->rank) << 16 |
                     static_cast<std::uint64_t>(index_);
  const auto bits = philox(context.seed, static_cast<std::uint64_t>(context.update), where);
  return std::uint64_t{bits[0]} << 32 | bits[1];
}

at::Tensor UnitAdapter::output_of(const at::Tensor& input, bool training) const {
  if (!unit_.forward) {
    return input;
  }
  const at::Tensor output = named(fmt::format("unit {}", name()), state_->gathers, [&] {
    return unit_.forward(input, {.batch = state_->batch, .training = training});
  });
  if (!output.defined()) {
    throw Error(ErrorKind::kModel,
                fmt::format("unit {} gave an undefined tensor\n  Its forward must return what the "
                            "next unit, or the loss, takes.",
                            name()));
  }
  return output;
}

at::Tensor UnitAdapter::loss_of(const at::Tensor& output,
                                const models::ForwardContext& context) const {
  const zeroth::Loss loss =
      named("the loss", state_->gathers, [&] { return loss_(output, state_->batch); });
  if (loss.weight < 0) {
    throw Error(ErrorKind::kModel,
                fmt::format("the loss has weight {}\n  It is the number of terms in its sum: "
                            "target tokens, or 1 for a mean.",
                            loss.weight));
  }
  if (!loss.sum.defined() || loss.sum.numel() != 1) {
    throw Error(
        ErrorKind::kModel,
        fmt::format("the loss has {} where one number is needed\n  Give the sum of its terms.",
                    loss.sum.defined() ? fmt::format("{} numbers", loss.sum.numel()) : "nothing"));
  }
  if (context.counted_targets != nullptr) {
    *context.counted_targets = loss.weight;
  }
  return loss.sum;
}

}  // namespace zeroth::library
