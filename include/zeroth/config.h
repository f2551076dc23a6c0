#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace zeroth {

// Settings by DeepSpeed's names and paths (or those of `zeroth train`): files, JSON text, and
// values in code. Values in code are stronger than files; what is equally strong must agree. All is
// read and judged by initialize(), which shows every error at once.
class Config {
 public:
  using Value = std::variant<bool,
                             std::int64_t,
                             double,
                             std::string,
                             std::vector<double>,
                             std::vector<std::string>>;

  struct Setting {
    std::string key;
    Value value;
  };

  Config() = default;

  [[nodiscard]] static Config from_file(std::string path) {
    return Config().add_file(std::move(path));
  }

  [[nodiscard]] static Config from_json(std::string text) {
    return Config().add_json(std::move(text));
  }

  // A ds_config.json.
  Config& add_file(std::string path) {
    files_.push_back(std::move(path));
    return *this;
  }

  // The text of one.
  Config& add_json(std::string text) {
    texts_.push_back(std::move(text));
    return *this;
  }

  // E.g. set("zero_optimization.stage", 2).
  Config& set(std::string key, Value value) {
    settings_.push_back({std::move(key), std::move(value)});
    return *this;
  }

  [[nodiscard]] const std::vector<std::string>& files() const noexcept { return files_; }

  [[nodiscard]] const std::vector<std::string>& texts() const noexcept { return texts_; }

  [[nodiscard]] const std::vector<Setting>& settings() const noexcept { return settings_; }

 private:
  std::vector<std::string> files_;
  std::vector<std::string> texts_;
  std::vector<Setting> settings_;
};

}  // namespace zeroth
