#include "config/schema.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "base/check.h"
#include "base/printing.h"
#include "base/text.h"
#include "config/field.h"
#include "config/keys/keys.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

std::string with_underscores(std::string_view name) {
  std::string canonical(name);
  std::replace(canonical.begin(), canonical.end(), '-', '_');
  return canonical;
}

std::vector<Declaration> all_declarations() {
  std::vector<Declaration> joined;
  for (Declarations part : {model_keys(),
                            vocabulary_keys(),
                            data_keys(),
                            training_keys(),
                            output_keys(),
                            saving_keys(),
                            generation_keys(),
                            export_keys(),
                            bench_keys(),
                            text_tool_keys(),
                            transformers_run_keys(),
                            transformers_compute_keys(),
                            llama_factory_model_keys(),
                            llama_factory_data_keys(),
                            llama_factory_tuning_keys(),
                            llama_factory_method_keys(),
                            launcher_keys(),
                            megatron_keys(),
                            check_keys(),
                            plan_keys(),
                            deepspeed_keys(),
                            accelerate_keys()}) {
    std::move(part.begin(), part.end(), std::back_inserter(joined));
  }
  return joined;
}

using NameIndex = std::unordered_map<std::string, const Declaration*>;

NameIndex index_names(const std::vector<Declaration>& declarations) {
  NameIndex index;
  for (const Declaration& declaration : declarations) {
    for (const std::string& name : all_names(declaration)) {
      const auto [there, added] = index.emplace(name, &declaration);
      ZEROTH_CHECK(added || there->second == &declaration, "two settings are called {}", name);
    }
  }
  return index;
}

}  // namespace

std::string command_name(Command command) {
  return Names<Command>::kNames.at(static_cast<std::size_t>(command));
}

std::vector<Command> all_commands() {
  std::vector<Command> commands;
  for (std::size_t i = 0; i < Names<Command>::kNames.size(); ++i) {
    commands.push_back(static_cast<Command>(i));
  }
  return commands;
}

std::string names_of(CommandSet commands) {
  std::vector<std::string> names;
  for (const Command command : all_commands()) {
    if ((commands & bit(command)) != 0) {
      names.push_back(command_name(command));
    }
  }
  return join(names, ", ");
}

bool Values::given(const std::string& key) const {
  const SourceKind kind = source(key).kind;
  return kind != SourceKind::kDefault && kind != SourceKind::kRule;
}

const std::vector<Declaration>& schema() {
  static const std::vector<Declaration> declarations = all_declarations();
  return declarations;
}

const Declaration* find_declaration(std::string_view name) {
  static const NameIndex index = index_names(schema());
  const auto found = index.find(with_underscores(name));
  return found == index.end() ? nullptr : found->second;
}

const Declaration* find_mistaken(std::string_view name) {
  const std::string wanted = with_underscores(name);
  for (const Declaration& key : schema()) {
    const auto& names = key.mistaken_names;
    if (std::find(names.begin(), names.end(), wanted) != names.end()) {
      return &key;
    }
  }
  return nullptr;
}

std::vector<std::string> all_names(const Declaration& declaration) {
  std::vector<std::string> names{declaration.name};
  for (const auto* more : {&declaration.aliases, &declaration.deepspeed, &declaration.accelerate}) {
    std::copy_if(more->begin(), more->end(), std::back_inserter(names), [&](const auto& name) {
      return std::find(names.begin(), names.end(), name) == names.end();
    });
  }
  return names;
}

bool accepts(Command command, const Declaration& declaration) noexcept {
  const bool in_run_family =
      (bit(command) & (kRunFamily | kCheckOnly)) != 0 && (declaration.commands & kRunFamily) != 0;
  return in_run_family || (declaration.commands & bit(command)) != 0;
}

std::string shown(const Json& value) {
  if (value.is_null()) {
    return "not set";
  }
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (value.is_array()) {
    std::vector<std::string> parts;
    std::transform(value.begin(), value.end(), std::back_inserter(parts), shown);
    return join(parts, ",");
  }
  return value.is_number_float() ? fmt::format("{:g}", value.get<double>()) : json_text(value);
}

Json unless_secret(const Declaration& declaration, const Json& value) {
  return declaration.secret && !value.is_null() ? Json("***") : value;
}

}  // namespace zeroth::config
