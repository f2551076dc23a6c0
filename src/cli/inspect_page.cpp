#include "cli/inspect_page.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "cli/inspect_sums.h"
#include "cli/repeated_names.h"
#include "formats/strict_json.h"
#include "observe/progress.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zeroth::cli {
namespace {

using checkpoint::Manifest;
using observe::bytes_text;
using observe::grouped;

// Names come from files: a line break in one must not look like a line of ours.
std::string on_one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, '?');
  return text;
}

std::string head(const Inspected& found) {
  const Sums sums = sums_of(found);
  std::vector<std::string> types;
  for (const auto& [type, elements] : sums.elements_by_type) {
    types.push_back(fmt::format("{} {}", grouped(elements), type));
  }
  std::string text = fmt::format("{} {}\n", name_of(found.kind), found.path.string());
  if (!found.tensors.empty()) {
    text += fmt::format("  {} parameters in {} tensors, {} ({})\n",
                        grouped(sums.elements),
                        found.tensors.size(),
                        bytes_text(sums.bytes),
                        join(types, ", "));
  }
  return text;
}

std::string goes_on_with(const Manifest& manifest) {
  if (manifest.only_weights()) {
    return "weights alone: a new run can begin with them, nothing can go on";
  }
  return fmt::format("weights, {} moment{} of each, counters and the place in the rows{}",
                     manifest.num_moments,
                     manifest.num_moments == 1 ? "" : "s",
                     manifest.master_in_result ? "" : "; the fp32 master stands in the state");
}

std::string place_text(const Json& progress) {
  if (!progress.contains("epoch") || !progress.contains("row")) {
    return "";
  }
  return fmt::format(", next row {} of epoch {}", progress["row"].dump(), progress["epoch"].dump());
}

std::string checkpoint_lines(const Manifest& manifest) {
  return fmt::format(
      "  after update {}{}; written by {} rank{} at stage {}\n  holds {}\n  model {}, rows {}\n",
      grouped(manifest.update),
      place_text(manifest.progress),
      manifest.ranks,
      manifest.ranks == 1 ? "" : "s",
      manifest.zero_stage,
      goes_on_with(manifest),
      manifest.model_fingerprint,
      manifest.data_fingerprint);
}

std::string settings_lines(const Json& settings) {
  std::string text;
  for (const auto& [key, value] : settings.items()) {
    text += fmt::format("  {} = {}\n", key, formats::shown(value));
  }
  return text.empty() ? "" : "settings\n" + text;
}

std::string times(std::int64_t count) {
  return count == 1 ? "" : fmt::format(" x{}", count);
}

// A unit's form is its parameters', so that only equal ones come together.
std::string unit_lines(const Manifest& manifest) {
  std::vector<NamedForm> units;
  std::map<std::string, std::vector<NamedForm>> parameters_of;
  for (const checkpoint::UnitEntry& unit : manifest.units) {
    std::vector<NamedForm> parameters;
    std::string form;
    for (const checkpoint::ParameterEntry& parameter : unit.parameters) {
      parameters.push_back(
          {.name = parameter.name, .form = fmt::format("[{}]", fmt::join(parameter.shape, ", "))});
      form += without_numbers(parameter.name) + parameters.back().form;
    }
    units.push_back({.name = unit.name, .form = form});
    std::vector<NamedForm>& all = parameters_of[form];
    all.insert(all.end(), parameters.begin(), parameters.end());
  }
  std::string text = "trained units\n";
  for (const RepeatedName& unit : repeated_names(units)) {
    text += fmt::format("  {}{}{}\n",
                        on_one_line(unit.name),
                        times(unit.count),
                        unit.form.empty() ? ": nothing is trained" : "");
    for (const RepeatedName& one : repeated_names(parameters_of[unit.form])) {
      text += fmt::format("    {} {}{}\n", on_one_line(one.name), one.form, times(one.count));
    }
  }
  return text;
}

std::string state_lines(const Manifest& manifest) {
  std::string text;
  for (const StateKind& kind : state_kinds(manifest)) {
    text += fmt::format("  {:<10} {} elements in {} tensors, {}\n",
                        kind.what,
                        grouped(kind.elements),
                        kind.tensors,
                        bytes_text(kind.elements * static_cast<std::int64_t>(sizeof(float))));
  }
  return text.empty() ? "" : "state\n" + text;
}

std::string checkpoint_list(const Inspected& found) {
  std::string text;
  for (const checkpoint::Found& one : found.checkpoints) {
    const std::string name = one.folder.filename().string();
    text += fmt::format("  {}  {}{}\n",
                        name,
                        one.fault.empty() ? "complete" : "incomplete: " + one.fault,
                        name == found.latest ? ", latest" : "");
  }
  return text.empty() ? "" : "checkpoints (zeroth inspect FOLDER/NAME reads one)\n" + text;
}

std::string tensor_lines(const Inspected& found) {
  std::vector<NamedForm> tensors;
  for (const auto& [name, tensor] : found.tensors) {
    tensors.push_back({.name = name,
                       .form = fmt::format("[{}] {}",
                                           fmt::join(tensor.view->shape, ", "),
                                           formats::dtype_name(tensor.view->dtype))});
  }
  std::string text;
  for (const RepeatedName& one : repeated_names(tensors)) {
    text += fmt::format("  {} {}{}\n", on_one_line(one.name), one.form, times(one.count));
  }
  return text.empty() ? "" : "tensors\n" + text;
}

std::string file_lines(const Inspected& found) {
  std::string text;
  for (const InspectedFile& file : found.files) {
    text += fmt::format("  {}  {}  {}{}\n",
                        file.name,
                        bytes_text(file.bytes),
                        name_of(file.outcome),
                        file.is_sound() ? "" : ": " + file.fault);
  }
  text = "files, and what their checksums say\n" + text;
  for (const std::string& fault : found.faults) {
    text += "fault: " + fault + "\n";
  }
  return text;
}

// The first few of many.
template <typename Entry, typename Text>
std::string some_lines(const std::string& title, const std::vector<Entry>& entries, Text text_of) {
  constexpr std::size_t kShown = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(entries.size(), kShown); ++i) {
    text += "    " + on_one_line(text_of(entries[i])) + "\n";
  }
  if (entries.size() > kShown) {
    text += fmt::format("    and {} more\n", entries.size() - kShown);
  }
  return entries.empty() ? "" : fmt::format("  {}: {}\n{}", title, entries.size(), text);
}

std::string as_it_is(const std::string& name) {
  return name;
}

std::string values_text(const OtherValues& values) {
  std::string text = fmt::format("{}: {} of {} elements differ",
                                 values.name,
                                 grouped(values.differing),
                                 grouped(values.elements));
  if (values.measured && values.without_difference < values.differing) {
    text += fmt::format(", by {:.6g} at the most", values.largest);
  }
  if (values.without_difference > 0) {
    text += fmt::format(", {} where one is no number", grouped(values.without_difference));
  }
  return text;
}

}  // namespace

std::string inspect_page(const Inspected& found) {
  std::string text = head(found);
  if (found.manifest) {
    text += checkpoint_lines(*found.manifest);
  }
  text += settings_lines(found.settings);
  if (found.manifest) {
    text += unit_lines(*found.manifest) + state_lines(*found.manifest);
  }
  return text + tensor_lines(found) + checkpoint_list(found) + file_lines(found);
}

std::string comparison_page(const Comparison& comparison,
                            const Inspected& here,
                            const Inspected& there) {
  const std::string a = here.path.string();
  const std::string b = there.path.string();
  std::string text = head(here) + file_lines(here) + head(there) + file_lines(there);
  text += fmt::format("{} and {}: {}\n  equal tensors: {}\n",
                      a,
                      b,
                      comparison.equal()          ? "equal"
                      : comparison.equal_values() ? "equal but for settings"
                                                  : "different",
                      comparison.equal_tensors);
  text += some_lines("only in " + a, comparison.only_here, as_it_is);
  text += some_lines("only in " + b, comparison.only_there, as_it_is);
  text += some_lines("of another shape or type", comparison.other_form, [](const OtherForm& form) {
    return fmt::format("{}: {} and {}", form.name, form.here, form.there);
  });
  text += some_lines("other values", comparison.other_values, values_text);
  text += some_lines("other settings", comparison.settings, [](const OtherSetting& setting) {
    return fmt::format(
        "{}: {} and {}", setting.key, formats::shown(setting.here), formats::shown(setting.there));
  });
  return text + some_lines("not compared", comparison.faults, as_it_is);
}

}  // namespace zeroth::cli
