#include "config/field.h"
#include "config/keys/forms.h"

// What `zeroth bench` measures, and which kernels compute.
namespace zeroth::config {

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
      });
}

}  // namespace zeroth::config
