#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
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
inline constexpr CommandSet kWithRows = kTrainAndEval | bit(Command::kPredict);
// Those that make updates.
inline constexpr CommandSet kUpdates = kTrainOnly | bit(Command::kBench);
// The commands that take everything `train` takes, so that one command line serves them all.
inline constexpr CommandSet kRunFamily = kWithRows | bit(Command::kBench);
// Those that speak about a run without starting it.
inline constexpr CommandSet kCheckOnly =
    bit(Command::kCheck) | bit(Command::kPlan) | bit(Command::kExplain);

[[nodiscard]] std::string command_name(Command command);  // as typed: "train-tokenizer"
[[nodiscard]] std::vector<Command> all_commands();
[[nodiscard]] std::string names_of(CommandSet commands);  // "train, eval"

// ---- values ----

// Where a value stands. The order is the order of strength, weakest first; what stands on one level
// must agree.
enum class SourceKind {
  kDefault,
  kRule,         // derived from other values
  kFile,         // ds_config.json, an Accelerate YAML
  kRecipe,       // `zeroth train recipe.yaml`, effective_config.json
  kCommandLine,  // and values passed in code
};

struct Source {
  SourceKind kind = SourceKind::kDefault;
  std::string text = "default";  // as shown: "command line", "ds_config.json:14", "2 x lora_rank"
};

// Source text of values passed in code.
inline constexpr auto kCodeSource = "code";

// Whether names are typed with two dashes there.
[[nodiscard]] inline bool has_dashes(const Source& source) {
  return source.kind == SourceKind::kCommandLine && source.text != kCodeSource;
}

// A value that gave way to a stronger source.
struct Overridden {
  Json value;
  Source source;
};

// What is in force for one key, and what it took to decide.
struct Setting {
  Json value;
  Source source;
  std::string spelled{};  // the name it was given by
  Json written{};         // the value as it was written under that name
  std::size_t entry = 0;  // which entry of the account that is
  std::vector<Overridden> overrides{};
  std::vector<std::string> agreeing{};  // further sources that say the same
  std::string auto_in{};                // where "auto" left it to others; empty: nowhere
};

// The merged values of one run, by canonical name: each declared key is present (null: not set).
class Values {
 public:
  explicit Values(Command command) : command_(command) {}

  [[nodiscard]] Command command() const noexcept { return command_; }

  void put(const std::string& key, Json value, Source source) {
    Setting& setting = settings_[key];
    setting.value = std::move(value);
    setting.source = std::move(source);
  }

  void put(const std::string& key, Setting setting) { settings_[key] = std::move(setting); }

  [[nodiscard]] const Setting& setting(const std::string& key) const { return settings_.at(key); }

  [[nodiscard]] const Json& operator[](const std::string& key) const {
    return settings_.at(key).value;
  }

  [[nodiscard]] const Source& source(const std::string& key) const {
    return settings_.at(key).source;
  }

  [[nodiscard]] bool given(const std::string& key) const;  // in some source, by the user

  [[nodiscard]] bool is(const std::string& key, const Json& value) const {
    return (*this)[key] == value;
  }

  // Two sources of one strength differ: a problem says so, and nothing is in force.
  void mark_conflict(const std::string& key) { conflicts_.insert(key); }

  [[nodiscard]] bool in_conflict(const std::string& key) const { return conflicts_.contains(key); }

 private:
  Command command_;
  std::map<std::string, Setting> settings_;
  std::set<std::string> conflicts_;
};

// ---- declarations ----

enum class ValueType {
  kInteger,
  kNumber,
  kBoolean,
  kText,
  kChoice,
  kList,     // of names
  kNumbers,  // a list of numbers
  kAny,      // any value; it is only compared with `off_values`
  kMap,      // a block whose inner names are the user's own
};

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

// What a value says about another key: mixed_precision "bf16" says bf16 true and fp16 false.
struct Part {
  std::string key;  // canonical
  Json value;
};

enum class Status {
  kInForce,   // does what its help says
  kPlanned,   // known, not built yet: `check` lists it, `train` refuses it, unless its value is
              // "off"
  kHarmless,  // known, and no result depends on it: without effect, with the reason
  kRefused,   // known, and not what Zeroth does: refused by name unless its value is "off"
};

// What it means for a run that goes on from a checkpoint that a value differs from the
// checkpoint's.
enum class OnResume {
  kListed,      // it is told, and the new value is in force
  kNeedsAllow,  // it would be another run: refused unless --allow names the key
  kByContent,   // the same, where what it names has another content; another name is told
  kUntold,      // how this process is started: nothing of the run itself
};

struct Declaration {
  // Canonical: Transformers' or LLaMA-Factory's word where they have one, else the path in
  // ds_config.json, else the path in an Accelerate YAML.
  std::string name;
  std::vector<std::string> aliases{};  // further names on the command line and in recipes
  // Where the key stands in a ds_config.json and in an Accelerate YAML: full paths with dots. These
  // are also names on the command line.
  std::vector<std::string> deepspeed{};
  std::vector<std::string> accelerate{};
  // Those of the names above that are out of date: accepted, with a notice that tells the new one.
  std::vector<std::string> old_names{};
  std::string successor{};  // the key that took over, where all of its names are out of date
  // What people write for it in vain: unknown keys, whose message names this one.
  std::vector<std::string> mistaken_names{};
  ValueType type = ValueType::kText;
  std::vector<std::string> choices{};
  std::map<std::string, std::string> synonyms{};  // other spellings of choices, in lower case
  // Further choices, in lower case, with the reason why they do not act yet, or never will.
  std::map<std::string, std::string> planned_choices{};
  std::map<std::string, std::string> refused_choices{};
  Range range{};
  Json default_value = nullptr;
  bool secret = false;       // shown as ***
  bool repeatable = false;   // kList: may be given several times, all of them count
  bool may_be_auto = false;  // "auto" in a file: a stronger source or the default fills it
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
  std::vector<Json> off_values{};  // kPlanned, kRefused: values that ask for nothing
  // kPlanned: what is there instead; kHarmless: why nothing depends on it; kRefused: why, and what
  // to write instead.
  std::string reason{};
  // The value stands for values of other keys and is used up by them. An error of its own is shown.
  std::function<std::vector<Part>(const Json&)> parts{};
  OnResume on_resume = OnResume::kListed;
};

[[nodiscard]] const std::vector<Declaration>& schema();

// By canonical name, alias or path, dashes and underscores alike; nullptr where there is none.
[[nodiscard]] const Declaration* find_declaration(std::string_view name);

// The key that `name` is often mistaken for; nullptr where there is none.
[[nodiscard]] const Declaration* find_mistaken(std::string_view name);

// The canonical name first, then aliases and paths, each once.
[[nodiscard]] std::vector<std::string> all_names(const Declaration& declaration);

// Whether `command` may be given this key at all (it may still have no effect there).
[[nodiscard]] bool accepts(Command command, const Declaration& declaration) noexcept;

// What `text` (from a command line) or `node` (from a file) means for this key, or what is wrong
// with it. In a file a number in quotes is a text, and a text is no number.
struct ParsedValue {
  Json value;
  std::string error;  // empty: fine. E.g. "takes an integer, not \"8.5\""
  bool out_of_range = false;
};

struct Node;  // config/document.h

[[nodiscard]] ParsedValue parse_value(const Declaration& declaration, std::string_view text);
[[nodiscard]] ParsedValue parse_node(const Declaration& declaration, const Node& node);

// "INTEGER", "sft|pt", ...: the value's place in help and messages.
[[nodiscard]] std::string value_placeholder(const Declaration& declaration);

// "at least 1 and at most 3", "above 0, or -1"; empty: any.
[[nodiscard]] std::string range_text(const Range& range);

// How a value is shown to people.
[[nodiscard]] std::string shown(const Json& value);

// The same, or "***" where the key is a secret.
[[nodiscard]] Json unless_secret(const Declaration& declaration, const Json& value);

// The options of one command, from the declarations alone.
[[nodiscard]] std::string options_help(Command command);

}  // namespace zeroth::config
