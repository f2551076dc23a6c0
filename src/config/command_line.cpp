#include "config/command_line.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/printing.h"
#include "base/text.h"
#include "config/dialect.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

constexpr std::string_view kSourceName = "command line";

// Names that may be typed for one command (or for any other, to say where a name belongs).
std::vector<std::string> names_for(Command command) {
  std::vector<std::string> names;
  for (const Declaration& declaration : schema()) {
    if (accepts(command, declaration)) {
      const std::vector<std::string> more = all_names(declaration);
      names.insert(names.end(), more.begin(), more.end());
    }
  }
  return names;
}

// Names that `start` abbreviates: no name may be abbreviated, but this is what was meant.
std::vector<std::string> continuations(const std::string& start,
                                       const std::vector<std::string>& names) {
  constexpr std::size_t kShortest = 4;
  constexpr std::size_t kMost = 3;
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (start.size() >= kShortest && name.starts_with(start) && found.size() < kMost) {
      found.push_back(name);
    }
  }
  return found;
}

std::string unknown_option(Command command, const std::string& name) {
  std::string canonical = name;
  std::replace(canonical.begin(), canonical.end(), '-', '_');
  const std::vector<std::string> names = names_for(command);
  std::vector<std::string> near;
  if (const Declaration* meant = find_mistaken(canonical)) {
    near.push_back(meant->name);
  } else {
    near = continuations(canonical, names);
  }
  if (near.empty()) {
    near = nearest_names(canonical, names);
  }
  const std::string help = fmt::format("zeroth {} --help lists the options", command_name(command));
  return near.empty()
             ? fmt::format("unknown option --{} ({})", name, help)
             : fmt::format("unknown option --{} (did you mean --{}?)", name, join(near, " or --"));
}

bool is_key_value(std::string_view argument) {
  const auto equals = argument.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return false;
  }
  return std::all_of(
      argument.begin(),
      argument.begin() + static_cast<std::ptrdiff_t>(equals),
      [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.'; });
}

bool is_option(std::string_view argument) {
  return argument.size() > 2 && argument.substr(0, 2) == "--";
}

class Reader {
 public:
  Reader(Command command,
         std::span<const std::string> arguments,
         Gathered& gathered,
         Problems& problems)
      : command_(command), arguments_(arguments), gathered_(gathered), problems_(problems) {}

  std::string read() {
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (!is_utf8(argument)) {
        problem(ProblemKind::kUsage,
                "",
                fmt::format("a word of the command line is not UTF-8: {}", json_text(argument)));
        continue;
      }
      if (is_option(argument)) {
        read_option(std::string_view(argument).substr(2));
      } else if (is_key_value(argument)) {
        read_option(argument);
      } else {
        read_bare_word(argument);
      }
    }
    if (!files_.empty()) {
      take(*find_declaration("dataset"), "dataset", join(files_, ","));
    }
    return recipe_;
  }

 private:
  void read_option(std::string_view option) {
    const auto equals = option.find('=');
    const std::string name(option.substr(0, equals));
    std::optional<std::string> text;
    if (equals != std::string_view::npos) {
      text = std::string(option.substr(equals + 1));
    }
    if (const Declaration* key = find_declaration(name)) {
      read_known(*key, name, std::move(text));
    } else if (const Declaration* negated = negated_switch(name); negated != nullptr && !text) {
      take(*negated, name.substr(3), "false");  // after "no_"
    } else {
      refuse(ProblemKind::kUnknown, name, text, unknown_option(command_, name));
      skip_value(text.has_value());
    }
  }

  // Transformers' own spelling for switching off what is on by default.
  static const Declaration* negated_switch(std::string_view name) {
    const bool negated = name.substr(0, 3) == "no_" || name.substr(0, 3) == "no-";
    const Declaration* key = negated ? find_declaration(name.substr(3)) : nullptr;
    return key != nullptr && key->type == ValueType::kBoolean ? key : nullptr;
  }

  void read_known(const Declaration& key,
                  const std::string& name,
                  std::optional<std::string> text) {
    if (!text) {
      text = take_value(key);
    }
    if (!accepts(command_, key)) {
      refuse(ProblemKind::kMisplaced,
             name,
             text,
             fmt::format("--{} is an option of zeroth {}, not of zeroth {}",
                         name,
                         names_of(key.commands),
                         command_name(command_)));
    } else if (!text) {
      refuse(ProblemKind::kType,
             name,
             text,
             fmt::format("--{} needs a value: {}", name, value_placeholder(key)));
    } else {
      take(key, name, *text);
    }
  }

  // The next argument, if it is this option's value: a switch takes one only if it is a boolean
  // word.
  std::optional<std::string> take_value(const Declaration& key) {
    const bool is_switch = key.type == ValueType::kBoolean;
    const bool has_next = next_ < arguments_.size() && !is_option(arguments_[next_]);
    if (has_next && (!is_switch || parse_value(key, arguments_[next_]).error.empty())) {
      return arguments_[next_++];
    }
    return is_switch || key.type == ValueType::kAny ? std::optional<std::string>("true")
                                                    : std::nullopt;
  }

  void skip_value(bool has_value) {
    if (!has_value && next_ < arguments_.size() && !is_option(arguments_[next_]) &&
        !is_key_value(arguments_[next_])) {
      ++next_;
    }
  }

  void problem(ProblemKind kind, const std::string& key, const std::string& message) {
    problems_.add(
        {.kind = kind, .key = key, .message = message, .sources = {std::string(kSourceName)}});
  }

  // Every word that was typed for an option ends in the account, the wrong ones too.
  void refuse(ProblemKind kind,
              const std::string& name,
              const std::optional<std::string>& text,
              const std::string& message) {
    problem(kind, name, message);
    gathered_.account.push_back({.path = name,
                                 .value = text ? Json(*text) : Json(),
                                 .source = std::string(kSourceName),
                                 .outcome = Outcome::kRefused,
                                 .note = message});
  }

  void take(const Declaration& key, const std::string& name, const std::string& text) {
    ParsedValue parsed = parse_value(key, text);
    if (!parsed.error.empty()) {
      refuse(parsed.out_of_range ? ProblemKind::kRange : ProblemKind::kType,
             name,
             text,
             fmt::format("--{} {} ({})", name, parsed.error, kSourceName));
      return;
    }
    Statement statement;
    statement.written = key.type == ValueType::kChoice ? Json(text) : parsed.value;
    statement.value = std::move(parsed.value);
    statement.source = {SourceKind::kCommandLine, std::string(kSourceName)};
    statement.spelled = name;
    give(gathered_, key, std::move(statement), problems_);
  }

  static bool is_recipe(const std::string& word) {
    return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json");
  }

  void read_bare_word(const std::string& word) {
    const bool runs = (bit(command_) & (kRunFamily | kCheckOnly)) != 0;
    if (command_ == Command::kTrainTokenizer) {
      files_.push_back(word);
    } else if (runs && is_recipe(word) && recipe_.empty()) {
      recipe_ = word;
    } else if (runs && is_recipe(word)) {
      problem(
          ProblemKind::kUsage,
          "",
          fmt::format("{} is a second recipe beside {}: give one, and the differences as options",
                      word,
                      recipe_));
    } else {
      problem(ProblemKind::kUsage,
              "",
              fmt::format("unexpected word \"{}\": options are written --name value or name=value; "
                          "several files are separated by commas",
                          word));
    }
  }

  Command command_;
  std::span<const std::string> arguments_;
  Gathered& gathered_;
  Problems& problems_;
  std::size_t next_ = 0;
  std::string recipe_;
  std::vector<std::string> files_;  // train-tokenizer's bare words
};

}  // namespace

std::string read_command_line(Command command,
                              std::span<const std::string> arguments,
                              Gathered& gathered,
                              Problems& problems) {
  return Reader(command, arguments, gathered, problems).read();
}

}  // namespace zeroth::config
