#include "config/document.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLargestBytes = 16 << 20;  // a configuration, not a data file

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::kConfig, message);
}

void check_file(const fs::path& file, const std::string& what) {
  std::error_code error;
  if (!fs::exists(file, error)) {
    const std::string where =
        file.is_absolute() ? "" : fmt::format(" (looked in {})", fs::current_path(error).string());
    refuse(fmt::format("{} not found: {}{}", what, file.string(), where));
  }
  if (!fs::is_regular_file(file, error)) {
    refuse(fmt::format("{} is not a file: {}", what, file.string()));
  }
  if (fs::file_size(file, error) > kLargestBytes) {
    refuse(fmt::format(
        "{} is larger than 16 MiB, which no configuration is: {}", what, file.string()));
  }
}

// A number as JSON has it, else a text.
Json scalar(const std::string& text) {
  const Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_discarded() || parsed.is_structured() ? Json(text) : parsed;
}

}  // namespace

Json to_json(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return nullptr;
    case Node::Kind::kBoolean:
    case Node::Kind::kNumber:
    case Node::Kind::kPlain:
      return scalar(node.text);
    case Node::Kind::kText:
      return node.text;
    case Node::Kind::kList: {
      Json list = Json::array();
      for (const Node& item : node.items) {
        list.push_back(to_json(item));
      }
      return list;
    }
    case Node::Kind::kBlock:
      break;
  }
  Json block = Json::object();
  for (const Member& member : node.members) {
    if (!member.again) {
      block[member.key] = to_json(member.value);
    }
  }
  return block;
}

std::string kind_name(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "null";
    case Node::Kind::kBoolean:
    case Node::Kind::kNumber:
    case Node::Kind::kPlain:
      return node.text;
    case Node::Kind::kText:
      return fmt::format("string \"{}\"", node.text);
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kBlock:
      break;
  }
  return "a block";
}

void add_member(Node& block, Member member, const std::string& name, Problems& problems) {
  const auto same = std::find_if(block.members.begin(), block.members.end(), [&](const Member& m) {
    return m.key == member.key;
  });
  member.again = same != block.members.end();
  if (member.again) {
    problems.add({.kind = ProblemKind::kDuplicate,
                  .key = member.key,
                  .message = fmt::format("{}: duplicate key \"{}\" (lines {} and {})",
                                         name,
                                         member.key,
                                         same->line,
                                         member.line),
                  .sources = {fmt::format("{}:{}", name, same->line),
                              fmt::format("{}:{}", name, member.line)}});
  }
  block.members.push_back(std::move(member));
}

Node read_document(const fs::path& file,
                   const std::string& name,
                   const std::string& what,
                   Problems& problems) {
  check_file(file, what);
  const std::string text = read_file(file, ErrorKind::kConfig);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    refuse(fmt::format("{}: the file is empty: {}", what, file.string()));
  }
  const std::string ending = file.extension().string();
  const bool yaml = ending == ".yaml" || ending == ".yml";
  return yaml ? read_yaml(text, name, problems) : read_json(text, name, problems);
}

}  // namespace zeroth::config
