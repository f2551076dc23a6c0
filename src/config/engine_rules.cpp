#include "config/engine_rules.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "config/keys/optimizers.h"
#include "config/offload_names.h"
#include "config/rules.h"
#include "offload/swap_file.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

constexpr auto kAdamMode = "optimizer.params.adam_w_mode";
constexpr auto kNesterov = "optimizer.params.nesterov";
constexpr auto kDampening = "optimizer.params.dampening";
constexpr auto kLeast = "optimizer.params.min_coeff";
constexpr auto kMost = "optimizer.params.max_coeff";
constexpr auto kCommunication = "communication_data_type";
constexpr auto kAccumulation = "data_types.grad_accum_dtype";

bool acts(const Values& values, const std::string& key) {
  const Declaration& declaration = *find_declaration(key);
  return !declaration.without_effect || !declaration.without_effect(values);
}

// A conflict of two values. `message` goes on after both.
void add_conflict(const Values& values,
                  const std::string& one,
                  const std::string& other,
                  const std::string& message,
                  Problems& problems) {
  problems.add({.kind = ProblemKind::kConflict,
                .key = one,
                .message = fmt::format("{} and {}: {}",
                                       spelled_with_source(values, one),
                                       spelled_with_source(values, other),
                                       message),
                .sources = {values.source(one).text, values.source(other).text}});
}

const char* mode_of(const Values& values) {
  return values.is("bf16", true) ? "bf16" : values.is("fp16", true) ? "fp16" : "fp32";
}

void check_precision(const Values& values, Problems& problems) {
  if (values.is("bf16", true) && values.is("fp16", true)) {
    problems.add({.kind = ProblemKind::kConflict,
                  .key = "bf16",
                  .message = fmt::format("--bf16 and --fp16 are both on: a run computes in one of "
                                         "them\n    {}\n    {}",
                                         spelled_with_source(values, "bf16"),
                                         spelled_with_source(values, "fp16")),
                  .sources = {values.source("bf16").text, values.source("fp16").text}});
  }
}

void check_buffer_type(const Values& values, Problems& problems) {
  constexpr auto kType = "data_types.buffer_dtype";
  const Json& type = values[kType];
  const std::string mode = mode_of(values);
  if (type.is_null() || type == "fp32" || type == mode) {
    return;
  }
  const char* decides = mode == "fp16" ? "fp16" : "bf16";
  add_conflict(values,
               kType,
               decides,
               fmt::format("the model computes in {}; leave buffer_dtype out", mode),
               problems);
}

void check_loss_scale(const Values& values, Problems& problems) {
  constexpr auto kMinimum = "fp16.min_loss_scale";
  constexpr auto kPower = "fp16.initial_scale_power";
  if (acts(values, kMinimum) &&
      values[kMinimum].get<double>() > std::ldexp(1.0, values[kPower].get<int>())) {
    add_conflict(values,
                 kMinimum,
                 kPower,
                 fmt::format("the first scale, 2 to the power {}, is below the minimum",
                             shown(values[kPower])),
                 problems);
  }
}

void check_nesterov(const Values& values, Problems& problems) {
  if (!acts(values, kNesterov) || !values.is(kNesterov, true)) {
    return;
  }
  if (values["sgd_momentum"] == 0.0) {
    add_conflict(
        values, kNesterov, "sgd_momentum", "there is no momentum to look ahead by", problems);
  }
  if (values[kDampening] != 0.0) {
    add_conflict(values, kNesterov, kDampening, "Nesterov's rule has no dampening", problems);
  }
}

void check_bounds_of_lamb(const Values& values, Problems& problems) {
  if (acts(values, kLeast) && values[kLeast].get<double>() > values[kMost].get<double>()) {
    add_conflict(values, kLeast, kMost, "no factor lies between them", problems);
  }
}

void check_adam_mode(const Values& values, Problems& problems) {
  if (values.is("optim", "adam_l2") && values.is(kAdamMode, true)) {
    add_conflict(
        values, "optim", kAdamMode, "adam_l2 is what adam_w_mode false makes of Adam", problems);
  }
}

// Where one block names the type and a parameter that the type has not, PyTorch and DeepSpeed fail;
// one source that overrides the other is another matter.
void check_optimizer_block(const Values& values, Problems& problems) {
  constexpr std::array kParameters{"adam_beta1",
                                   "adam_epsilon",
                                   "optimizer.params.bias_correction",
                                   kAdamMode,
                                   "sgd_momentum",
                                   kDampening,
                                   kNesterov,
                                   "optimizer.params.lr_decay",
                                   kMost,
                                   kLeast};
  constexpr std::string_view kBlock = "optimizer.params.";
  const Setting& type = values.setting("optim");
  const auto taken = parameters_of_optimizer(values);
  if (type.spelled != "optimizer.type" || taken.empty()) {
    return;
  }
  for (const char* key : kParameters) {
    const Setting& setting = values.setting(key);
    const bool here = values.given(key) && setting.source.kind == type.source.kind &&
                      setting.spelled.starts_with(kBlock);
    const std::string word = here ? setting.spelled.substr(kBlock.size()) : "";
    if (here && std::find(taken.begin(), taken.end(), word) == taken.end()) {
      const std::string message =
          fmt::format("it has no {}; it takes lr, weight_decay, {}", word, fmt::join(taken, ", "));
      add_conflict(values, key, "optim", message, problems);
    }
  }
}

// Offloaded state is updated where it rests, by the processor, piece by piece.
void check_offloaded_optimizer(const Values& values, Problems& problems) {
  constexpr std::array kOnTheHost{"adamw_torch", "adam_l2", "sgd", "adagrad", "lion"};
  const bool works =
      std::find(kOnTheHost.begin(), kOnTheHost.end(), values["optim"]) != kOnTheHost.end();
  const bool weights_in_files = values.is(kParamDevice, "nvme") && acts(values, kParamDevice);
  if (works || (values.is(kOptimizerDevice, "none") && !weights_in_files)) {
    return;
  }
  const char* const device = weights_in_files ? kParamDevice : kOptimizerDevice;
  problems.add({.kind = ProblemKind::kConflict,
                .key = "optim",
                .message = fmt::format("{} with {}: state that is offloaded is updated by the "
                                       "processor, which does AdamW, Adam, SGD, Adagrad and Lion",
                                       spelled_with_source(values, "optim"),
                                       spelled_with_source(values, device)),
                .sources = {values.source("optim").text, values.source(device).text}});
}

// State in files needs a folder for them.
void check_offload_path(const Values& values,
                        const char* device,
                        const std::string& path,
                        Problems& problems) {
  if (values.is(device, "nvme") && acts(values, path) &&
      (values[path].is_null() || values[path] == "")) {
    problems.add({.kind = ProblemKind::kConflict,
                  .key = path,
                  .message = fmt::format("{} needs {}: a folder on the disk that state is to rest "
                                         "on",
                                         spelled_with_source(values, device),
                                         path),
                  .sources = {values.source(device).text}});
  }
}

void check_io_blocks(const Values& values, Problems& problems) {
  constexpr auto kBlock = "aio.block_size";
  if (acts(values, kBlock) && values[kBlock].get<std::int64_t>() % offload::kAlignment != 0) {
    problems.add({.kind = ProblemKind::kRange,
                  .key = kBlock,
                  .message = fmt::format("{}: must be a multiple of {}: direct I/O moves whole "
                                         "pages",
                                         spelled_with_source(values, kBlock),
                                         offload::kAlignment),
                  .sources = {values.source(kBlock).text}});
  }
}

void check_offload(const Values& values, Problems& problems) {
  check_offloaded_optimizer(values, problems);
  check_offload_path(values, kOptimizerDevice, kOptimizerPath, problems);
  check_offload_path(values, kParamDevice, kParamPath, problems);
  check_io_blocks(values, problems);
}

// As DeepSpeed demands it.
void check_gather_bucket(const Values& values, Problems& problems) {
  constexpr auto kSize = "zero_optimization.allgather_bucket_size";
  if (acts(values, kSize) && values[kSize].get<std::int64_t>() % 2 != 0) {
    problems.add({.kind = ProblemKind::kRange,
                  .key = kSize,
                  .message = fmt::format("{}: must be even, so that pieces stay aligned",
                                         spelled_with_source(values, kSize)),
                  .sources = {values.source(kSize).text}});
  }
}

std::string bits_of(const Json& type) {
  return type == "bf16" ? "8 significant bits" : "11 significant bits, and none above 65504";
}

void notice_narrow_sums(const Values& values, std::vector<std::string>& notices) {
  if (!values.is(kAccumulation, "fp32")) {
    notices.push_back(fmt::format(
        "{}: the gradients of micro-steps are added up in {}; an addend that is small beside the "
        "sum is lost",
        spelled_with_source(values, kAccumulation),
        bits_of(values[kAccumulation])));
  }
  if (!values.is(kCommunication, "fp32") && acts(values, kCommunication)) {
    notices.push_back(fmt::format("{}: gradients are rounded to {} on their way between ranks",
                                  spelled_with_source(values, kCommunication),
                                  bits_of(values[kCommunication])));
  }
}

}  // namespace

void choose_adam(Values& values) {
  if (is_called_adam(values) && values.is(kAdamMode, false)) {
    Setting setting = values.setting("optim");
    setting.value = "adam_l2";
    values.put("optim", std::move(setting));
  }
}

void check_engine(const Values& values, Problems& problems) {
  check_precision(values, problems);
  check_buffer_type(values, problems);
  check_loss_scale(values, problems);
  check_nesterov(values, problems);
  check_bounds_of_lamb(values, problems);
  check_adam_mode(values, problems);
  check_optimizer_block(values, problems);
  check_offload(values, problems);
  check_gather_bucket(values, problems);
}

std::vector<std::string> engine_notices(const Values& values) {
  std::vector<std::string> notices;
  if (values.setting("optim").written == "adamw_hf") {
    notices.push_back(
        fmt::format("{} is computed as adamw_torch, which decays a weight before its "
                    "update; Transformers' old AdamW decayed it after",
                    spelled_with_source(values, "optim")));
  }
  if (is_called_adam(values)) {
    notices.push_back(fmt::format(
        "{} means AdamW, as in DeepSpeed; adam_w_mode false makes it Adam with the decay in the "
        "gradient",
        spelled_with_source(values, "optim")));
  }
  notice_narrow_sums(values, notices);
  return notices;
}

}  // namespace zeroth::config
