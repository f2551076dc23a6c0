#include "config/field.h"
#include "config/keys/keys.h"

// What `zeroth export` makes of a model and its adapters.
namespace zeroth::config {
namespace {

constexpr auto kSection = "Export";
constexpr CommandSet kExportOnly = bit(Command::kExport);

}  // namespace

Declarations export_keys() {
  return {
      {.name = "merge",
       .type = ValueType::kBoolean,
       .default_value = true,
       .section = kSection,
       .commands = kExportOnly,
       .help = "add the adapters to the model's own weights",
       .field = field(&RunConfig::exporting, &ExportSettings::merge)},
      {.name = "export_dtype",
       .aliases = {"merge_dtype"},
       .type = ValueType::kChoice,
       .choices = choices_of<StoredType>(),
       .synonyms = {{"fp32", "float32"}, {"bf16", "bfloat16"}, {"fp16", "float16"}},
       .default_value = "auto",
       .section = kSection,
       .commands = kExportOnly,
       .help = "type of the written weights; auto: as the model stores them. Sums are made in fp32",
       .field = field(&RunConfig::exporting, &ExportSettings::dtype)},
      {.name = "export_size",
       .type = ValueType::kNumber,
       .range = kPositive,
       .default_value = 5,
       .unit = "GB",
       .section = kSection,
       .commands = kExportOnly,
       .help = "the most that one file of weights holds; more becomes file parts with an index",
       .field = field(&RunConfig::exporting, &ExportSettings::file_gigabytes)},
  };
}

}  // namespace zeroth::config
