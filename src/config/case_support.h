#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/report.h"
#include "config/resolve.h"
#include <gtest/gtest.h>
#include <unistd.h>

// What the tests of the published symptoms (one test per case, named by its id) have in common: a
// folder of input files, and what came of them.
namespace zeroth::config {

using Arguments = std::vector<std::string>;

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Of a Resolution: its problems, values and outcomes by name.
struct Verdict {
  Resolution all;

  [[nodiscard]] bool accepted() const { return all.problems.empty(); }

  [[nodiscard]] std::string messages() const {
    std::string text;
    for (const Problem& problem : all.problems.all()) {
      text += std::string(name_of(problem.kind)) + ": " + problem.message + "\n";
    }
    return text;
  }

  [[nodiscard]] bool says(const std::string& part) const { return has(messages(), part); }

  [[nodiscard]] std::vector<Problem> of_kind(ProblemKind kind) const {
    std::vector<Problem> found;
    std::copy_if(all.problems.all().begin(),
                 all.problems.all().end(),
                 std::back_inserter(found),
                 [kind](const Problem& problem) { return problem.kind == kind; });
    return found;
  }

  [[nodiscard]] SettingInForce setting(const std::string& key) const {
    const auto& settings = all.config.settings;
    const auto found = std::find_if(settings.begin(),
                                    settings.end(),
                                    [&](const SettingInForce& one) { return one.key == key; });
    EXPECT_NE(found, settings.end()) << key << " is not in force";
    return found == settings.end() ? SettingInForce{} : *found;
  }

  [[nodiscard]] Json value(const std::string& key) const { return setting(key).value; }

  [[nodiscard]] std::string source(const std::string& key) const { return setting(key).source; }

  // Why the value of this key has no effect; empty: it is not listed.
  [[nodiscard]] std::string idle(const std::string& key) const {
    return why(all.config.without_effect, key);
  }

  [[nodiscard]] std::string planned(const std::string& key) const {
    return why(all.config.planned, key);
  }

  // What became of the value that was written under this path, with the note on it.
  [[nodiscard]] std::string outcome(const std::string& path) const {
    for (const Written& written : all.account) {
      if (written.path == path) {
        return std::string(name_of(written.outcome)) +
               (written.note.empty() ? "" : ": " + written.note);
      }
    }
    return "not in the account";
  }

  [[nodiscard]] bool notices(const std::string& part) const {
    const auto& notices = all.config.notices;
    return std::any_of(
        notices.begin(), notices.end(), [&](const std::string& one) { return has(one, part); });
  }

  [[nodiscard]] std::string table() const { return start_table(all.config); }

 private:
  static std::string why(const std::vector<IdleSetting>& settings, const std::string& key) {
    for (const IdleSetting& setting : settings) {
      if (setting.key == key) {
        return setting.why;
      }
    }
    return "";
  }
};

class Case : public ::testing::Test {
 protected:
  Case()
      : folder_(std::filesystem::temp_directory_path() /
                ("zeroth_case_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }

  ~Case() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  // Writes an input file and returns its path.
  std::string file(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
    return path.string();
  }

  [[nodiscard]] std::string folder() const { return folder_.string(); }

  // `zeroth check` with these words.
  static Verdict check(const Arguments& words, const Environment& environment = {}) {
    return {resolve_all(Command::kCheck, words, environment)};
  }

  // The same with a ds_config.json of this content, and the words after it.
  Verdict check_json(const std::string& json, const Arguments& words = {}) const {
    Arguments all{"--deepspeed", file("ds.json", json)};
    all.insert(all.end(), words.begin(), words.end());
    return check(all);
  }

  // With an Accelerate YAML of this content.
  Verdict check_yaml(const std::string& yaml, const Arguments& words = {}) const {
    Arguments all{"--accelerate_config", file("acc.yaml", yaml)};
    all.insert(all.end(), words.begin(), words.end());
    return check(all);
  }

  // `zeroth train` up to the settings; what is planned is refused there.
  static std::string train_error(Arguments words, const Environment& environment = {}) {
    words.insert(words.end(),
                 {"--model_name_or_path", "m", "--dataset", "d.json", "--output_dir", "out"});
    try {
      (void)resolve(Command::kTrain, words, environment);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "accepted";
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace zeroth::config
