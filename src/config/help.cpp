// --help from the declarations.
#include <algorithm>

#include "base/text.h"
#include "config/schema.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

constexpr std::size_t kTextColumn = 34;
constexpr std::size_t kLineWidth = 100;

// `text` broken at spaces, every line but the first indented to the text column.
std::string wrapped(std::string_view text) {
  std::string lines;
  std::size_t column = kTextColumn;
  for (const std::string& word : split(text, ' ')) {
    if (column > kTextColumn && column + 1 + word.size() > kLineWidth) {
      lines += "\n" + std::string(kTextColumn, ' ');
      column = kTextColumn;
    } else if (column > kTextColumn) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines;
}

bool is_old(const Declaration& declaration, const std::string& name) {
  const auto& old = declaration.old_names;
  return std::find(old.begin(), old.end(), name) != old.end();
}

std::string notes(Command command, const Declaration& declaration) {
  std::vector<std::string> parts;
  if ((declaration.required & bit(command)) != 0) {
    parts.emplace_back("required");
  }
  const Json& value = declaration.default_value;
  if (!value.is_null() && !(value.is_array() && value.empty())) {
    parts.push_back(fmt::format("default {}", shown(value)));
  }
  if (!declaration.unit.empty()) {
    parts.push_back(declaration.unit);
  }
  std::vector<std::string> aliases = declaration.aliases;
  std::erase_if(aliases, [&](const std::string& name) { return is_old(declaration, name); });
  if (!aliases.empty()) {
    parts.push_back("also --" + join(aliases, ", --"));
  }
  return parts.empty() ? "" : fmt::format(" ({})", join(parts, "; "));
}

std::string help_line(Command command, const Declaration& declaration) {
  const std::string option =
      fmt::format("  --{} {}", declaration.name, value_placeholder(declaration));
  const std::string text = wrapped(declaration.help + notes(command, declaration));
  const bool fits = option.size() + 2 <= kTextColumn;
  return fits ? fmt::format("{:{}}{}\n", option, kTextColumn, text)
              : fmt::format("{}\n{}{}\n", option, std::string(kTextColumn, ' '), text);
}

std::vector<std::string> sections_of(Command command) {
  std::vector<std::string> sections;
  for (const Declaration& declaration : schema()) {
    const bool shown_here =
        declaration.status == Status::kInForce && (declaration.commands & bit(command)) != 0;
    if (shown_here &&
        std::find(sections.begin(), sections.end(), declaration.section) == sections.end()) {
      sections.push_back(declaration.section);
    }
  }
  return sections;
}

}  // namespace

std::string options_help(Command command) {
  std::string help;
  for (const std::string& section : sections_of(command)) {
    help += section + "\n";
    for (const Declaration& declaration : schema()) {
      const bool shown_here =
          declaration.status == Status::kInForce && (declaration.commands & bit(command)) != 0;
      if (shown_here && declaration.section == section) {
        help += help_line(command, declaration);
      }
    }
  }
  return help;
}

}  // namespace zeroth::config
