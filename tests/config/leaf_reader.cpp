#include "config/leaf_reader.h"

#include <algorithm>
#include <cstdint>

#include <yaml-cpp/yaml.h>

namespace zeroth::config {
namespace {

constexpr std::string_view kBetween = " \t\r\n,:";

// Goes through JSON once, from bracket to bracket; commas and colons are white space to it.
class JsonScan {
 public:
  explicit JsonScan(std::string_view text) : text_(text) {}

  std::vector<std::string> run() {
    skip();
    if (next() == '{') {
      block("");
    }
    return leaves_;
  }

 private:
  [[nodiscard]] char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip() {
    while (at_ < text_.size()) {
      if (kBetween.find(text_[at_]) != std::string_view::npos) {
        ++at_;
      } else if (text_[at_] == '#' || text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        at_ = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        return;
      }
    }
  }

  static unsigned hex(std::string_view digits) {
    return static_cast<unsigned>(std::stoul("0" + std::string(digits), nullptr, 16));
  }

  // What \uXXXX stands for, in UTF-8; a pair of them beyond the first plane.
  void unicode(std::string& word) {
    std::uint32_t code = hex(text_.substr(at_ + 1, 4));
    at_ += 4;
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_ + 1, 2) == "\\u") {
      code = 0x10000U + ((code - 0xD800U) << 10U) + (hex(text_.substr(at_ + 3, 4)) - 0xDC00U);
      at_ += 6;
    }
    const int following = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr unsigned kFirst[] = {0x00, 0xC0, 0xE0, 0xF0};
    word +=
        static_cast<char>(kFirst[following] | (code >> (6U * static_cast<unsigned>(following))));
    for (int i = following - 1; i >= 0; --i) {
      word += static_cast<char>(0x80U | ((code >> (6U * static_cast<unsigned>(i))) & 0x3FU));
    }
  }

  std::string quoted() {
    std::string word;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        word += text_[at_];
      } else if (const char letter = ++at_ < text_.size() ? text_[at_] : '\0'; letter == 'u') {
        unicode(word);
      } else {
        word += letter == 'n'   ? '\n'
                : letter == 't' ? '\t'
                : letter == 'r' ? '\r'
                : letter == 'b' ? '\b'
                : letter == 'f' ? '\f'
                                : letter;
      }
    }
    ++at_;
    return word;
  }

  // A number or a word without quotes.
  void bare() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n,:{}[]\"#/").find(text_[at_]) == std::string_view::npos) {
      ++at_;
    }
  }

  void list() {
    ++at_;
    for (skip(); at_ < text_.size() && next() != ']'; skip()) {
      const std::size_t before = at_;
      value("", false);
      at_ += at_ == before ? 1 : 0;
    }
    ++at_;
  }

  // `counts`: whether what stands inside is listed, too.
  void value(const std::string& path, bool counts) {
    if (next() == '{') {
      const std::size_t known = leaves_.size();
      block(path);
      if (!counts) {
        leaves_.resize(known);
      }
      return;
    }
    if (next() == '[') {
      list();
    } else if (next() == '"') {
      (void)quoted();
    } else {
      bare();
    }
    if (counts) {
      leaves_.push_back(path);
    }
  }

  void block(const std::string& prefix) {
    ++at_;
    bool empty = true;
    for (skip(); at_ < text_.size() && next() != '}'; skip()) {
      if (next() != '"') {
        ++at_;  // not JSON at all: on to what may be
        continue;
      }
      empty = false;
      const std::string key = quoted();
      skip();
      value(prefix.empty() ? key : prefix + "." + key, true);
    }
    ++at_;
    if (empty && !prefix.empty()) {
      leaves_.push_back(prefix);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::string> leaves_;
};

void list_leaves(const YAML::Node& node, const std::string& path, std::vector<std::string>& out) {
  if (!node.IsMap() || node.size() == 0) {
    out.push_back(path);
    return;
  }
  for (const auto& pair : node) {
    const std::string key = pair.first.Scalar();
    list_leaves(pair.second, path.empty() ? key : path + "." + key, out);
  }
}

}  // namespace

std::vector<std::string> leaves_of_json(std::string_view text) {
  return JsonScan(text).run();
}

std::vector<std::string> leaves_of_yaml(std::string_view text) {
  std::vector<std::string> leaves;
  const YAML::Node root = YAML::Load(std::string(text));
  if (root.IsMap() && root.size() > 0) {
    list_leaves(root, "", leaves);
  }
  return leaves;
}

}  // namespace zeroth::config
