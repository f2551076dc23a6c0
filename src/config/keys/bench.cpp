#include "config/field.h"
#include "config/keys/forms.h"

// What `zeroth bench` measures, and which kernels compute.
namespace zeroth::config {
namespace {

std::optional<std::string> only_fast_kernels_pack(const Values& values) {
  if (values.is("kernels", "reference")) {
    return "kernels is reference: it reads weights as they are stored";
  }
  if ((values.command() == Command::kTrain || values.command() == Command::kBench) &&
      values.is("finetuning_type", "full")) {
    return "finetuning_type is full: no weights are frozen";
  }
  return std::nullopt;
}

}  // namespace

Declarations bench_keys() {
  constexpr Range kFew{.min = 1, .max = 1e6};
  return in_section(
      "Bench",
      {
          {.name = "bench_updates",
           .type = ValueType::kInteger,
           .range = kFew,
           .default_value = 10,
           .unit = "updates",
           .commands = bit(Command::kBench),
           .help = "updates that are measured; the median counts",
           .field = field(&RunConfig::bench, &BenchSettings::updates)},
          {.name = "bench_warmup",
           .type = ValueType::kInteger,
           .range = kFew,
           .default_value = 3,
           .unit = "updates",
           .commands = bit(Command::kBench),
           .help = "updates before these, in which memory is found and products are prepared",
           .field = field(&RunConfig::bench, &BenchSettings::warmup)},
          {.name = "kernels",
           .type = ValueType::kChoice,
           .choices = choices_of<KernelChoice>(),
           .default_value = "auto",
           .commands = kRunFamily,
           .help =
               "reference: operations as LibTorch has them; auto: the fastest that this processor "
               "has, which give the same numbers to rounding, in another order of sums",
           .field = field(&RunConfig::kernels)},
          {.name = "pack_weights",
           .type = ValueType::kChoice,
           .choices = choices_of<PackWeights>(),
           .default_value = "auto",
           .commands = kRunFamily,
           .help =
               "weights that do not train are kept once more as this processor's products read "
               "them fastest, with kernels auto. auto: for forward and backward where memory "
               "has room for both, else for forward alone, else not; forward: for forward alone",
           .without_effect = only_fast_kernels_pack,
           .field = field(&RunConfig::pack_weights)},
      });
}

}  // namespace zeroth::config
