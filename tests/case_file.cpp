#include "case_file.h"

#include <stdexcept>

#include "base/file.h"
#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::testing {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// Words as a shell splits them, with double quotes only.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false;
  bool begun = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
      begun = true;
    } else if (c == ' ' && !quoted) {
      if (begun) {
        words.push_back(std::move(word));
      }
      word.clear();
      begun = false;
    } else {
      word += c;
      begun = true;
    }
  }
  if (begun) {
    words.push_back(word);
  }
  return words;
}

// False if the line's first word is unknown.
bool take_line(CaseFile& test, const std::string& word, const std::string& rest) {
  if (word == "needs") {
    test.needs = rest;
  } else if (word == "file") {
    const auto space = rest.find(' ');
    const std::string content = space == std::string::npos ? "" : rest.substr(space + 1);
    test.files.push_back({rest.substr(0, space), replaced(content, "\\n", "\n")});
  } else if (word == "env") {
    test.environment.push_back(rest);
  } else if (word == "in") {
    test.input += rest + "\n";
  } else if (word == "run") {
    test.arguments = words_of(rest);
  } else if (word == "exit") {
    test.exit_code = std::stoi(rest);
  } else if (word == "out") {
    test.output += rest + "\n";
  } else if (word == "has") {
    test.output_parts.push_back(rest);
  } else if (word == "says") {
    test.error_parts.push_back(rest);
  } else if (word == "lacks") {
    test.absent_parts.push_back(rest);
  } else if (word == "within") {
    test.within_ms = std::stod(rest);
  } else {
    return false;
  }
  return true;
}

}  // namespace

CaseFile read_case(const std::filesystem::path& path, const std::filesystem::path& data_folder) {
  CaseFile test;
  int number = 0;
  for (const std::string& raw : split(read_file(path, ErrorKind::kDisk), '\n')) {
    ++number;
    if (raw.empty() || raw[0] == '#') {
      continue;
    }
    std::string line = replaced(raw, "$DATA", data_folder.string());
    line = replaced(line, "$MODELS", (data_folder / "models").string());
    const auto space = line.find(' ');
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (!take_line(test, line.substr(0, space), rest)) {
      throw std::runtime_error(fmt::format("{}:{}: unknown line: {}", path.string(), number, raw));
    }
  }
  return test;
}

}  // namespace zeroth::testing
