#include "config/reference_page.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "config/schema.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

constexpr auto kIntroduction = R"(# Configuration

This page is written by `zeroth_reference_page` from the declarations in `src/config/keys/`; after a
change there, write it anew:

    ninja -C build/dev zeroth_reference_page && build/dev/tests/zeroth_reference_page > docs/configuration.md

Nothing that you write is ignored. Each value ends in force, overridden by a stronger source, without
effect (with the reason), planned (`zeroth check` lists it, `zeroth train` refuses it) or refused by
name. `zeroth check` takes what `zeroth train` takes and shows it all; `zeroth explain KEY` tells about
one key.

## Which source wins

1. the command line: `--key value`, `--key=value`, `key=value`; `--switch` and `--no_switch`
2. a recipe: `zeroth train recipe.yaml` (names as on the command line), `effective_config.json`
3. files: a `ds_config.json` (`--deepspeed`) and an Accelerate YAML (`--accelerate_config`)
4. a rule, such as lora_alpha = 2 x lora_rank
5. the default

The start table shows what a value overrides. What stands on one level must agree: an option given
twice with two values, or a `ds_config.json` and an Accelerate file that differ, is an error that names
both places. `--strict` makes any overridden value, and any without effect, an error.

The `scheduler` block of a `ds_config.json` is one whole: where a stronger source gives another
`lr_scheduler_type`, none of the block's parameters stays in force.

A key may be written by each of its names: on the command line and in a recipe all of them, with
dashes or underscores (`--zero-stage`, `--zero_optimization.stage`); in a `ds_config.json` and in an
Accelerate file by their own paths. No name may be abbreviated. Names that are out of date are
accepted, and a notice tells the new one.

## How values are written

- **`"auto"`** in a file leaves the value to a stronger source, or to the default. Where the table says
  so, the model's hidden size h fills it: `reduce_bucket_size` h x h,
  `stage3_prefetch_bucket_size` 0.9 x h x h, `stage3_param_persistence_threshold` 10 x h.
- **`null`** gives no value, as if the key were not there.
- **Comments**: `//`, `#` and `/* */` in JSON, `#` in YAML. A key that begins with `_` is a comment, and
  so is all inside it; where the rest of its name is a key, a notice says that it is not read. A comma
  before a closing bracket may stand.
- **A key twice** in one block is an error that names both lines.
- **Integers** may have an exponent: `2e8` is 200000000. In JSON a number in quotes is a text.
- **Lists** are separated by commas on the command line and in YAML text: `q_proj,v_proj`.
- **An empty block** says nothing.

## The batch triple

    train_batch_size = per_device_train_batch_size x gradient_accumulation_steps x data-parallel ranks

Each of the three from any source; one or two of them give the others, and all three must fit. The
micro-batch is 8 rows where nobody says anything, and accumulation is 1. The world size comes from
`--ranks`, a launcher's variables or the Accelerate file's `num_processes`; `zeroth check --world_size N`
speaks for another machine. A contradiction is an error that names all four factors, their sources,
and ways to mend it.
)";

std::string code(const std::string& text) {
  return fmt::format("`{}`", text);
}

// A cell stays one: no bar, no line end.
std::string cell(std::string text) {
  for (auto bar = text.find('|'); bar != std::string::npos; bar = text.find('|', bar + 2)) {
    text.insert(bar, 1, '\\');
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string in_code(const std::vector<std::string>& names) {
  std::vector<std::string> parts;
  std::transform(names.begin(), names.end(), std::back_inserter(parts), code);
  return join(parts, ", ");
}

// The paths of one kind of file; "same" where it is the canonical name.
std::string places(const char* file,
                   const Declaration& key,
                   const std::vector<std::string>& paths) {
  if (paths.empty()) {
    return "";
  }
  const bool same = paths.size() == 1 && paths.front() == key.name;
  return fmt::format("{}: {}", file, same ? "same" : in_code(paths));
}

std::string out_of_date(const Declaration& key) {
  if (!key.successor.empty()) {
    return "out of date, now " + code(key.successor);
  }
  return key.old_names.empty() ? "" : "out of date: " + in_code(key.old_names);
}

std::string other_names(const Declaration& key) {
  std::vector<std::string> parts;
  for (std::string part : {in_code(key.aliases),
                           places("ds", key, key.deepspeed),
                           places("acc", key, key.accelerate),
                           out_of_date(key)}) {
    if (!part.empty()) {
      parts.push_back(std::move(part));
    }
  }
  return join(parts, "; ");
}

std::string kind_of(const Declaration& key) {
  switch (key.type) {
    case ValueType::kInteger:
      return "integer";
    case ValueType::kNumber:
      return "number";
    case ValueType::kBoolean:
      return "true, false";
    case ValueType::kChoice:
      return join(key.choices, ", ");
    case ValueType::kList:
      return "names";
    case ValueType::kNumbers:
      return "numbers";
    case ValueType::kMap:
      return "a block of your own names";
    case ValueType::kAny:
      return "any value";
    case ValueType::kText:
      break;
  }
  return "text";
}

// The few by name; many would fill the row.
std::string planned_choices(const Declaration& key, const char* before) {
  constexpr std::size_t kMost = 6;
  std::vector<std::string> choices;
  for (const auto& [choice, why] : key.planned_choices) {
    choices.push_back(choice);
  }
  if (choices.size() > kMost) {
    return fmt::format("{}{} others (planned)", before, choices.size());
  }
  return choices.empty() ? "" : fmt::format("{}{} (planned)", before, join(choices, ", "));
}

std::string takes(const Declaration& key) {
  std::string text = kind_of(key);
  if (const std::string range = range_text(key.range); !range.empty()) {
    text += " " + range;
  }
  if (!key.unit.empty()) {
    text += " (" + key.unit + ")";
  }
  text += planned_choices(key, text.empty() ? "" : ", ");
  return text + (key.may_be_auto ? ", auto" : "");
}

std::string default_of(const Declaration& key) {
  const Json& value = key.default_value;
  return value.is_null() || (value.is_array() && value.empty()) ? "" : shown(value);
}

const char* word_of(Status status) {
  switch (status) {
    case Status::kInForce:
      return "";
    case Status::kPlanned:
      return "**planned**: ";
    case Status::kHarmless:
      return "**without effect**: ";
    case Status::kRefused:
      return "**refused**: ";
  }
  return "";
}

std::string commands_of(const Declaration& key) {
  const bool of_train = (key.commands & bit(Command::kTrain)) != 0;
  return of_train ? "" : fmt::format(" ({})", names_of(key.commands));
}

std::string meaning_of(const Declaration& key) {
  std::string text = key.help + (key.help.empty() ? "" : commands_of(key));
  // A reason may take up the help's words already.
  const bool repeats = !key.help.empty() && key.reason.starts_with(key.help);
  if (key.status == Status::kInForce) {
    return text;
  }
  const std::string status = word_of(key.status) + key.reason;
  return text.empty() || repeats ? status : text + "; " + status;
}

std::string row_of(const Declaration& key) {
  return fmt::format("| {} | {} | {} | {} | {} |\n",
                     code(key.name),
                     cell(other_names(key)),
                     cell(takes(key)),
                     cell(default_of(key)),
                     cell(meaning_of(key)));
}

// DeepSpeed's keys stand under the block that holds them.
std::string section_of(const Declaration& key) {
  if (!key.section.empty()) {
    return key.section;
  }
  const auto dot = key.name.find('.');
  return dot == std::string::npos ? "ds_config.json"
                                  : fmt::format("ds_config.json: {}", key.name.substr(0, dot));
}

std::vector<std::string> sections() {
  std::vector<std::string> names;
  for (const Declaration& key : schema()) {
    if (std::find(names.begin(), names.end(), section_of(key)) == names.end()) {
      names.push_back(section_of(key));
    }
  }
  return names;
}

std::string section(const std::string& name) {
  std::string text = fmt::format(
      "\n### {}\n\n| name | other names | takes | default | meaning |\n|---|---|---|---|---|\n",
      name);
  for (const Declaration& key : schema()) {
    if (section_of(key) == name) {
      text += row_of(key);
    }
  }
  return text;
}

std::size_t count(Status status) {
  return static_cast<std::size_t>(
      std::count_if(schema().begin(), schema().end(), [&](const Declaration& key) {
        return key.status == status;
      }));
}

std::string summary() {
  return fmt::format(
      "\n## Every key\n\n{} keys: {} act, {} are planned, {} are known and change nothing, {} are "
      "refused.\n\nOther names: aliases first; `ds` is the path in a `ds_config.json`, `acc` in an "
      "Accelerate YAML, \"same\" the name itself. A planned or refused key may be given the value "
      "that asks "
      "for nothing (its default, `false`, `none`).\n",
      schema().size(),
      count(Status::kInForce),
      count(Status::kPlanned),
      count(Status::kHarmless),
      count(Status::kRefused));
}

}  // namespace

std::string reference_page() {
  std::string page = kIntroduction + summary();
  for (const std::string& name : sections()) {
    page += section(name);
  }
  return page;
}

}  // namespace zeroth::config
