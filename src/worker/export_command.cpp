// Adapters go into their base; the result is a model folder that stands alone.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "base/error.h"
#include "base/log.h"
#include "base/output_folder.h"
#include "formats/weights_writer.h"
#include "models/base_weights.h"
#include "models/logits_by_unit.h"
#include "observe/progress.h"
#include "shapes/families.h"
#include "train/tensors_in_turn.h"
#include "worker/commands.h"
#include "worker/inputs.h"
#include <fmt/format.h>

#include <ATen/ops/isfinite.h>
#include <ATen/ops/randint.h>

namespace zeroth::worker {
namespace {

namespace fs = std::filesystem;
using formats::DType;
using models::BaseWeights;

DType type_to_write(config::StoredType asked, DType stored) {
  switch (asked) {
    case config::StoredType::kFp32:
      return DType::kF32;
    case config::StoredType::kBf16:
      return DType::kBF16;
    case config::StoredType::kFp16:
      return DType::kF16;
    case config::StoredType::kAsStored:
      break;
  }
  return stored;
}

void add_all(train::TensorsInTurn& tensors, const BaseWeights& merged, config::StoredType asked) {
  for (const shapes::UnitShape& unit : shapes::model_shape(merged.config()).units) {
    for (const shapes::ParameterShape& parameter : unit.parameters) {
      tensors.add(parameter.name,
                  type_to_write(asked, merged.stored_type(parameter.name)),
                  parameter.shape,
                  [&merged, name = parameter.name] { return merged.value(name); });
    }
  }
}

// The widest type that is written: what config.json then says.
DType common_type(const std::vector<formats::TensorToWrite>& tensors) {
  const auto wide = std::find_if(tensors.begin(), tensors.end(), [](const auto& tensor) {
    return tensor.dtype == DType::kF32;
  });
  return wide == tensors.end() ? tensors.front().dtype : DType::kF32;
}

struct Difference {
  double largest = 0;   // between two logits
  double of_size = 0;   // root of the mean square of all logits
  double relative = 0;  // root mean square of the differences over that
};

// The base with the last adapter beside it, the others in it.
models::Model load_unmerged(const OpenedBase& opened, const formats::ModelConfig& config) {
  models::Model model =
      models::load_model(config,
                         opened.files,
                         {.lora = opened.last,
                          .freeze = {},
                          .merge = {opened.adapters.begin(), std::prev(opened.adapters.end())},
                          .trainable = false});
  models::load_adapter(model, *opened.adapters.back().file);
  return model;
}

// What was written, against the base with its adapters beside it.
Difference compare_with_unmerged(const OpenedBase& opened,
                                 const Inputs& inputs,
                                 const fs::path& written) {
  constexpr std::int64_t kRows = 2;
  constexpr std::int64_t kTokens = 32;
  const std::int64_t tokens = std::min(kTokens, inputs.model_config.max_position_embeddings);
  const at::Tensor ids =
      at::randint(0, inputs.model_config.vocab_size, {kRows, tokens}, at::TensorOptions(at::kLong));
  models::Model unmerged = load_unmerged(opened, inputs.model_config);
  const at::Tensor expected = models::logits_by_unit(unmerged, ids);
  if (!at::isfinite(expected).all().item<bool>()) {
    remove_results(written);
    throw Error(ErrorKind::kModel,
                fmt::format("the model with its adapters gives no finite logits: {}",
                            why_not_finite(unmerged)));
  }
  models::Model merged =
      models::load_model(shapes::read_model_config(written / "config.json"),
                         std::make_shared<const formats::ModelWeights>(written),
                         {.lora = {}, .freeze = {}, .merge = {}, .trainable = false});
  const at::Tensor off = models::logits_by_unit(merged, ids) - expected;
  const double size = std::sqrt(expected.square().mean().item<double>());
  return {.largest = off.abs().max().item<double>(),
          .of_size = size,
          .relative = std::sqrt(off.square().mean().item<double>()) / std::max(size, 1e-30)};
}

// fp32 sums in another order, or a weight's rounding to the type that it is written in.
double allowed(DType written) {
  constexpr double kSums = 1e-4;
  constexpr double kRounding = 5e-2;
  return written == DType::kF32 ? kSums : kRounding;
}

void require_same(const Difference& difference, DType written, const fs::path& output) {
  if (difference.relative <= allowed(written)) {
    return;
  }
  remove_results(output);
  throw Error(
      ErrorKind::kInternal,
      fmt::format("the merged model gives other logits than the adapters do: {:.3g} of their "
                  "size, where {:.3g} is rounding\n  It was removed; the adapters are as "
                  "they were.",
                  difference.relative,
                  allowed(written)));
}

std::int64_t bytes_of(const std::vector<formats::TensorToWrite>& tensors) {
  std::int64_t bytes = 0;
  for (const formats::TensorToWrite& tensor : tensors) {
    bytes += static_cast<std::int64_t>(formats::size_to_write(tensor));
  }
  return bytes;
}

void require_room(std::int64_t needed, const fs::path& output) {
  const auto free = static_cast<std::int64_t>(fs::space(output).available);
  if (needed > free) {
    throw Error(
        ErrorKind::kDisk,
        fmt::format("the merged model takes {} and the disk of --output_dir {} has {} left\n"
                    "  Free some space or choose another folder.",
                    observe::bytes_text(needed),
                    output.string(),
                    observe::bytes_text(free)));
  }
}

void tell(const config::RunConfig& config,
          const std::vector<fs::path>& files,
          const Difference& difference) {
  log::info(
      fmt::format("logits of merged and unmerged weights differ by {:.2g} at the most, {:.2g} "
                  "of their size",
                  difference.largest,
                  difference.relative));
  log::info("files:");
  for (const fs::path& file : files) {
    log::info(fmt::format("  {} ({})",
                          file.string(),
                          observe::bytes_text(static_cast<std::int64_t>(fs::file_size(file)))));
  }
  if (config.json_output) {
    Json list = Json::array();
    for (const fs::path& file : files) {
      list.push_back(file.string());
    }
    std::puts(Json{{"files", list},
                   {"largest_difference", difference.largest},
                   {"relative_difference", difference.relative}}
                  .dump()
                  .c_str());
  }
}

}  // namespace

void run_export(const config::RunConfig& config) {
  const Inputs inputs = open_inputs(config);
  const OpenedBase opened = open_base_and_adapters(config, inputs);
  const BaseWeights merged(inputs.model_config, opened.files, opened.adapters);
  train::TensorsInTurn tensors;
  add_all(tensors, merged, config.exporting.dtype);
  const fs::path output = config.output.output_dir;
  require_room(bytes_of(tensors.to_write()), output);
  remove_results(output);
  constexpr double kGigabyte = 1e9;
  std::vector<fs::path> files = formats::write_model_weights(
      output,
      tensors.to_write(),
      static_cast<std::uint64_t>(config.exporting.file_gigabytes * kGigabyte));
  const DType written = common_type(tensors.to_write());
  formats::copy_config(merged.config(), written, output);
  files.push_back(output / "config.json");
  for (const fs::path& file : train::write_companions(companions_of(config, inputs), output)) {
    files.push_back(file);
  }
  const Difference difference = compare_with_unmerged(opened, inputs, output);
  require_same(difference, written, output);
  tell(config, files, difference);
}

}  // namespace zeroth::worker
