#include "config/command_line.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

constexpr std::string_view kSourceName = "command line";

// Names that may be typed for one command (or for any other, to say where a name belongs).
std::vector<std::string> names_for(Command command) {
  std::vector<std::string> names;
  for (const Declaration& declaration : schema()) {
    if (accepts(command, declaration)) {
      names.push_back(declaration.name);
      names.insert(names.end(), declaration.aliases.begin(), declaration.aliases.end());
    }
  }
  return names;
}

std::string unknown_option(Command command, const std::string& name) {
  std::string canonical = name;
  std::replace(canonical.begin(), canonical.end(), '-', '_');
  const std::vector<std::string> near = nearest(canonical, names_for(command));
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
  Reader(Command command, std::span<const std::string> arguments, Problems& problems)
      : command_(command), arguments_(arguments), problems_(problems) {}

  std::vector<Given> read() {
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (is_option(argument)) {
        read_option(std::string_view(argument).substr(2));
      } else if (is_key_value(argument)) {
        read_option(argument);
      } else {
        read_bare_word(argument);
      }
    }
    if (!files_.empty()) {
      give(*find_declaration("dataset"), "dataset", join(files_, ","));
    }
    return std::move(given_);
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
      give(*negated, name, "false");
    } else {
      problems_.add(unknown_option(command_, name));
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
      problems_.add(fmt::format("--{} is an option of zeroth {}, not of zeroth {}",
                                name,
                                names_of(key.commands),
                                command_name(command_)));
    } else if (!text) {
      problems_.add(fmt::format("--{} needs a value: {}", name, value_placeholder(key)));
    } else {
      give(key, name, *text);
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

  void give(const Declaration& key, const std::string& name, const std::string& text) {
    if (key.name == "optim_args") {
      give_optimizer_arguments(text);
      return;
    }
    ParsedValue parsed = parse_value(key, text);
    if (!parsed.error.empty()) {
      problems_.add(fmt::format("--{} {} ({})", name, parsed.error, kSourceName));
      return;
    }
    given_.push_back({.key = &key,
                      .value = std::move(parsed.value),
                      .source = {SourceKind::kCommandLine, std::string(kSourceName)}});
  }

  // "momentum=0.9": each part is a setting of its own.
  void give_optimizer_arguments(const std::string& text) {
    for (const std::string& part : split(text, ',')) {
      const std::string_view word = trim(part);
      constexpr std::string_view kMomentum = "momentum=";
      if (word.substr(0, kMomentum.size()) == kMomentum) {
        give(*find_declaration("sgd_momentum"),
             "optim_args momentum",
             std::string(word.substr(kMomentum.size())));
      } else {
        problems_.add(
            fmt::format("--optim_args takes momentum=VALUE, not \"{}\" ({})", part, kSourceName));
      }
    }
  }

  void read_bare_word(const std::string& word) {
    if (command_ == Command::kTrainTokenizer) {
      files_.push_back(word);
    } else if (word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json")) {
      problems_.add(
          fmt::format("{}: recipe files are not read yet; give the settings as options", word));
    } else {
      problems_.add(fmt::format(
          "unexpected word \"{}\": options are written --name value or name=value; several "
          "files are separated by commas",
          word));
    }
  }

  Command command_;
  std::span<const std::string> arguments_;
  Problems& problems_;
  std::size_t next_ = 0;
  std::vector<Given> given_;
  std::vector<std::string> files_;  // train-tokenizer's bare words
};

}  // namespace

std::vector<Given> read_command_line(Command command,
                                     std::span<const std::string> arguments,
                                     Problems& problems) {
  return Reader(command, arguments, problems).read();
}

}  // namespace zeroth::config
