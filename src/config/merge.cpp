#include "config/merge.h"

#include <algorithm>
#include <map>

#include "base/printing.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

using GivenToKey = std::vector<const Given*>;

std::string file_of(const Source& source) {
  return source.text.substr(0, source.text.rfind(':'));
}

// As it stands in a file: texts in quotes.
std::string in_quotes(const Json& value) {
  return value.is_string() ? json_text(value) : shown(value);
}

class Merger {
 public:
  Merger(const Gathered& gathered, Values& values, Problems& problems)
      : gathered_(gathered), values_(values), problems_(problems) {}

  void merge() {
    std::map<const Declaration*, GivenToKey> by_key;
    for (const Given& given : gathered_.given) {
      by_key[given.key].push_back(&given);
    }
    for (const Declaration& key : schema()) {  // in the order of the schema, not of pointers
      if (const auto found = by_key.find(&key); found != by_key.end()) {
        merge_key(key, found->second);
      }
    }
    report_files_that_differ();
  }

 private:
  void merge_key(const Declaration& key, GivenToKey all) {
    std::stable_sort(all.begin(), all.end(), [](const Given* a, const Given* b) {
      return a->source.kind > b->source.kind;
    });
    Setting setting = values_.setting(key.name);
    const Given* strongest = nullptr;
    const Given* peer = nullptr;  // the first of the same strength
    for (const Given* given : all) {
      if (given->is_auto()) {
        setting.auto_in = given->source.text;
        continue;
      }
      const bool first_of_its_strength = peer == nullptr || peer->source.kind != given->source.kind;
      if (strongest == nullptr) {
        strongest = given;
        setting.value = given->value;
        setting.source = given->source;
        setting.spelled = given->spelled;
        setting.written = written(*given);
        setting.entry = given->written;
      } else if (!first_of_its_strength && key.repeatable) {
        append(setting.value, given->value);
      } else if (!first_of_its_strength && given->value != peer->value) {
        conflict(key, *peer, *given);
      } else if (given->value == setting.value) {
        setting.agreeing.push_back(given->source.text);
      } else {
        setting.overrides.push_back({given->value, given->source});
      }
      peer = first_of_its_strength ? given : peer;
    }
    values_.put(key.name, std::move(setting));
  }

  static void append(Json& list, const Json& more) {
    list.insert(list.end(), more.begin(), more.end());
  }

  void conflict(const Declaration& key, const Given& one, const Given& other) {
    values_.mark_conflict(key.name);
    if (one.source.kind == SourceKind::kFile && file_of(one.source) != file_of(other.source)) {
      differing_.push_back(fmt::format("{}: {} and {}", key.name, said_by(one), said_by(other)));
      differing_sources_.insert(differing_sources_.end(), {one.source.text, other.source.text});
      return;
    }
    const std::string message =
        has_dashes(one.source)
            ? fmt::format("--{} is given twice: {} and {} ({})",
                          key.name,
                          shown(unless_secret(key, one.value)),
                          shown(unless_secret(key, other.value)),
                          one.source.text)
            : fmt::format("{}: {} ({}) vs {}: {} ({}) both say what {} is: keep one",
                          one.spelled,
                          in_quotes(written(one)),
                          one.source.text,
                          other.spelled,
                          in_quotes(written(other)),
                          other.source.text,
                          key.name);
    problems_.add({.kind = ProblemKind::kConflict,
                   .key = key.name,
                   .message = message,
                   .sources = {one.source.text, other.source.text}});
  }

  [[nodiscard]] const Json& written(const Given& given) const {
    return gathered_.account[given.written].value;
  }

  // "bf16.enabled true (ds.json:3)"
  [[nodiscard]] std::string said_by(const Given& given) const {
    return fmt::format("{} {} ({})", given.spelled, shown(written(given)), given.source.text);
  }

  void report_files_that_differ() {
    if (differing_.empty()) {
      return;
    }
    std::string message = "two files disagree";
    for (const std::string& line : differing_) {
      message += "\n    " + line;
    }
    message += "\n    Make them equal, or leave one out.";
    problems_.add({.kind = ProblemKind::kConflict,
                   .key = "",
                   .message = message,
                   .sources = differing_sources_});
  }

  const Gathered& gathered_;
  Values& values_;
  Problems& problems_;
  std::vector<std::string> differing_;
  std::vector<std::string> differing_sources_;
};

}  // namespace

Values defaults_of(Command command) {
  Values values(command);
  for (const Declaration& key : schema()) {
    values.put(key.name, key.default_value, {});
  }
  return values;
}

void merge(const Gathered& gathered, Values& values, Problems& problems) {
  Merger(gathered, values, problems).merge();
}

}  // namespace zeroth::config
