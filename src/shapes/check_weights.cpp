#include "shapes/check_weights.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zeroth::shapes {
namespace {

using formats::TensorView;

constexpr std::size_t kListedFaults = 10;

// Collects faults; those beyond the listed ones are only counted, so their texts are never made.
class Faults {
 public:
  void add(const std::function<std::string()>& describe) {
    if (++count_ <= kListedFaults) {
      lines_ += "\n    " + describe();
    }
  }

  void throw_if_any(const std::string& what, const std::string& mend) const {
    if (count_ == 0) {
      return;
    }
    const std::string rest = count_ > kListedFaults
                                 ? fmt::format("\n    and {} more", count_ - kListedFaults)
                                 : std::string();
    throw Error(ErrorKind::kModel, fmt::format("{}:{}{}\n  {}", what, lines_, rest, mend));
  }

 private:
  std::size_t count_ = 0;
  std::string lines_;
};

// What a file or folder holds, seen alike.
struct Contents {
  std::vector<std::string> names;
  std::function<bool(const std::string&)> contains;
  std::function<const TensorView&(const std::string&)> at;
};

// `unused` are the tensors that nothing expects: a missing one may be among them under another
// name.
std::string describe_missing(const ParameterShape& expected,
                             const std::vector<std::string>& unused) {
  const std::vector<std::string> near = nearest(expected.name, unused, 1);
  return fmt::format("{} [{}] is missing{}",
                     expected.name,
                     fmt::join(expected.shape, ", "),
                     near.empty() ? "" : fmt::format(" (nearest there: {})", near.front()));
}

void check_tensor(const ParameterShape& expected, const TensorView& found, Faults& faults) {
  if (found.shape != expected.shape) {
    faults.add([&] {
      const bool is_turned = std::equal(
          found.shape.begin(), found.shape.end(), expected.shape.rbegin(), expected.shape.rend());
      return fmt::format("{} has shape [{}], expected [{}]{}",
                         expected.name,
                         fmt::join(found.shape, ", "),
                         fmt::join(expected.shape, ", "),
                         is_turned ? ": it is transposed" : "");
    });
  }
  if (!formats::is_weight_dtype(found.dtype)) {
    faults.add([&] {
      return fmt::format(
          "{} is {}, expected F32, BF16 or F16", expected.name, formats::dtype_name(found.dtype));
    });
  }
}

std::vector<std::string> unused_names(const std::vector<ParameterShape>& expected,
                                      const std::vector<std::string>& names) {
  std::set<std::string> used;
  for (const ParameterShape& parameter : expected) {
    used.insert(parameter.name);
  }
  std::vector<std::string> unused;
  std::copy_if(
      names.begin(), names.end(), std::back_inserter(unused), [&](const std::string& name) {
        return !used.contains(name);
      });
  return unused;
}

void check_contents(const std::vector<ParameterShape>& expected,
                    const Contents& contents,
                    const std::function<bool(std::string_view)>& is_harmless,
                    Faults& faults) {
  const std::vector<std::string> unused = unused_names(expected, contents.names);
  for (const ParameterShape& parameter : expected) {
    if (contents.contains(parameter.name)) {
      check_tensor(parameter, contents.at(parameter.name), faults);
    } else {
      faults.add([&] { return describe_missing(parameter, unused); });
    }
  }
  for (const std::string& name : unused) {
    if (!is_harmless(name)) {
      faults.add([&] { return fmt::format("{} is there and would not be used", name); });
    }
  }
}

std::vector<ParameterShape> all_parameters(const ModelShape& model) {
  std::vector<ParameterShape> parameters;
  for (const UnitShape& unit : model.units) {
    parameters.insert(parameters.end(), unit.parameters.begin(), unit.parameters.end());
  }
  return parameters;
}

// A target that fits no module is the adapter's fault here, not the command line's.
LoraTargets targets_of(const ModelShape& model,
                       const formats::AdapterConfig& config,
                       const std::filesystem::path& path) {
  try {
    return lora_targets(model, config);
  } catch (const Error& error) {
    const ErrorKind kind = error.kind() == ErrorKind::kConfig ? ErrorKind::kModel : error.kind();
    throw Error(kind, fmt::format("the adapter of {}: {}", path.string(), error.what()));
  }
}

// What the file must hold, and what it may hold besides if it is there.
std::vector<ParameterShape> adapter_tensors(const LoraTargets& targets,
                                            const formats::TensorFile& file) {
  std::vector<ParameterShape> tensors;
  for (const SavedTensor& saved : targets.saved) {
    if (!saved.optional || file.contains(saved.key)) {
      tensors.push_back({.name = saved.key, .shape = saved.shape});
    }
  }
  return tensors;
}

// What an adapter says of its base, to be told where it does not fit.
std::string origin_of(const formats::AdapterConfig& config) {
  return config.base_model_name_or_path.empty()
             ? std::string()
             : fmt::format(", trained on {},", config.base_model_name_or_path);
}

}  // namespace

void check_weights(const ModelShape& model, const formats::ModelWeights& weights) {
  const bool is_tied = !model.units.empty() && !model.units.back().borrowed.empty();
  const auto is_harmless = [is_tied](std::string_view name) {
    return name.ends_with("rotary_emb.inv_freq") || (is_tied && name == "lm_head.weight");
  };
  const Contents contents{
      .names = weights.names(),
      .contains = [&](const std::string& name) { return weights.contains(name); },
      .at = [&](const std::string& name) -> const TensorView& { return weights.at(name); }};
  Faults faults;
  check_contents(all_parameters(model), contents, is_harmless, faults);
  faults.throw_if_any(
      fmt::format("the weights in {} do not fit its config.json", weights.folder().string()),
      "Config and weights belong to different models, or one of them was changed: fetch both "
      "again.");
}

void check_adapter(const ModelShape& model,
                   const formats::AdapterConfig& config,
                   const formats::TensorFile& file) {
  Contents contents{
      .names = {},
      .contains = [&](const std::string& name) { return file.contains(name); },
      .at = [&](const std::string& name) -> const TensorView& { return file.at(name); }};
  for (const auto& [name, view] : file.tensors()) {
    contents.names.push_back(name);
  }
  const LoraTargets targets = targets_of(model, config, file.path());
  Faults faults;
  check_contents(
      adapter_tensors(targets, file), contents, [](std::string_view) { return false; }, faults);
  faults.throw_if_any(
      fmt::format("the adapter {}{} does not fit this model and its own adapter_config.json (r = "
                  "{})",
                  file.path().string(),
                  origin_of(config),
                  config.rank),
      "Use the base model that the adapter was trained on, or fetch the adapter again.");
}

}  // namespace zeroth::shapes
