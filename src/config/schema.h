#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.h"

// Every setting is a declaration; parsing, errors, help, the start table and the RunConfig handed
// to a worker all come from the list that schema() returns. A new setting is one new declaration
// (and its RunConfig field).
namespace zeroth::config {

// ---- commands ----

using CommandSet = unsigned;  // bits, one per Command

[[nodiscard]] constexpr CommandSet bit(Command command) noexcept {
  return 1U << static_cast<unsigned>(command);
}

inline constexpr CommandSet kTrainOnly = bit(Command::kTrain);
inline constexpr CommandSet kPredictOnly = bit(Command::kPredict);
inline constexpr CommandSet kTrainAndEval = bit(Command::kTrain) | bit(Command::kEval);
// The commands that take everything `train` takes, so that one command line serves them all.
inline constexpr CommandSet kRunFamily = kTrainAndEval | bit(Command::kPredict);

[[nodiscard]] std::string command_name(Command command);  // as typed: "train-tokenizer"
[[nodiscard]] std::vector<Command> all_commands();
[[nodiscard]] std::string names_of(CommandSet commands);  // "train, eval"

// ---- values ----

// Where a value stands. The order is the order of strength, weakest first.
enum class SourceKind { kDefault, kRule, kCommandLine };

struct Source {
  SourceKind kind = SourceKind::kDefault;
  std::string text = "default";  // as shown: "command line", "2 x lora_rank"
};

// The merged values of one run, by canonical name: each declared key is present (null: not set).
class Values {
 public:
  explicit Values(Command command) : command_(command) {}

  [[nodiscard]] Command command() const noexcept { return command_; }

  void put(const std::string& key, Json value, Source source) {
    entries_[key] = {std::move(value), std::move(source)};
  }

  [[nodiscard]] const Json& operator[](const std::string& key) const {
    return entries_.at(key).value;
  }

  [[nodiscard]] const Source& source(const std::string& key) const {
    return entries_.at(key).source;
  }

  [[nodiscard]] bool given(const std::string& key) const;  // in some source, by the user

  [[nodiscard]] bool is(const std::string& key, const Json& value) const {
    return (*this)[key] == value;
  }

 private:
  struct Entry {
    Json value;
    Source source;
  };

  Command command_;
  std::map<std::string, Entry> entries_;
};

// ---- declarations ----

enum class ValueType { kInteger, kNumber, kBoolean, kText, kChoice, kList, kAny };

struct Range {
  std::optional<double> min{};
  std::optional<double> max{};
  bool min_excluded = false;
  bool max_excluded = false;
  // One value outside the range with a meaning of its own, e.g. -1 for "all".
  std::optional<double> also{};
};

// A rule that gives a value where no source does; nullopt: the default stays.
struct RuleValue {
  Json value;
  std::string text;  // shown as the source
};

// How a value enters a RunConfig and comes back out.
struct Field {
  std::function<Json(const RunConfig&)> get;
  std::function<void(RunConfig&, const Json&)> set;
};

enum class Status {
  kInForce,   // does what its help says
  kPlanned,   // known, not built: refused by name unless its value is "off"
  kHarmless,  // known, and nothing here depends on it: without effect, with the reason
};

struct Declaration {
  std::string name;  // canonical: Transformers' or LLaMA-Factory's
  std::vector<std::string> aliases{};
  ValueType type = ValueType::kText;
  std::vector<std::string> choices{};
  std::map<std::string, std::string> synonyms{};  // other spellings of choices
  Range range{};
  Json default_value = nullptr;
  std::string unit{};
  std::string section{};    // heading in --help
  CommandSet commands = 0;  // where it has an effect
  CommandSet required = 0;  // where it must be given
  std::string help{};
  // Why the value changes nothing in this run; nullopt: it has an effect.
  std::function<std::optional<std::string>(const Values&)> without_effect{};
  std::function<std::optional<RuleValue>(const Values&)> rule{};
  Field field{};  // empty: used up while resolving
  Status status = Status::kInForce;
  std::vector<Json> off_values{};  // kPlanned: values that ask for nothing
  std::string reason{};  // kPlanned: what to do instead; kHarmless: why nothing depends on it
};

[[nodiscard]] const std::vector<Declaration>& schema();

// By canonical name or alias, dashes and underscores alike; nullptr where there is none.
[[nodiscard]] const Declaration* find_declaration(std::string_view name);

// Whether `command` may be given this key at all (it may still have no effect there).
[[nodiscard]] bool accepts(Command command, const Declaration& declaration) noexcept;

// What `text` (from a command line) means for this key, or what is wrong with it.
struct ParsedValue {
  Json value;
  std::string error;  // empty: fine. E.g. "takes an integer, not \"8.5\""
};

[[nodiscard]] ParsedValue parse_value(const Declaration& declaration, std::string_view text);

// "INTEGER", "sft|pt", ...: the value's place in help and messages.
[[nodiscard]] std::string value_placeholder(const Declaration& declaration);

// How a value is shown to people.
[[nodiscard]] std::string shown(const Json& value);

// The options of one command, from the declarations alone.
[[nodiscard]] std::string options_help(Command command);

}  // namespace zeroth::config
