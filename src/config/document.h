#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "config/problems.h"

// Configuration files as they are written: every key and value with its line, nothing interpreted
// yet. What cannot be read at all is an Error of kConfig with its position; a key that stands twice
// in one block is a problem that names both lines.
namespace zeroth::config {

struct Member;

struct Node {
  enum class Kind {
    kNull,
    kBoolean,
    kNumber,
    kText,   // in quotes
    kPlain,  // YAML without quotes: what it means depends on the key
    kList,
    kBlock,
  };

  Kind kind = Kind::kNull;
  std::string text;  // of a scalar, as written and without quotes
  std::size_t line = 0;
  std::vector<Node> items;      // kList
  std::vector<Member> members;  // kBlock
};

struct Member {
  std::string key;
  std::size_t line = 0;
  Node value;
  bool again = false;  // the block has the key already: a problem says so, this one does not count
};

// One value with the path of keys that leads to it. An empty block is a leaf too.
struct Leaf {
  std::string path;  // "zero_optimization.stage"
  std::size_t line = 0;
  Node value;
};

// As a value of its own, e.g. for a list.
[[nodiscard]] Json to_json(const Node& node);

// How a node's kind is called in messages: "a block {...}", "a number", ...
[[nodiscard]] std::string kind_name(const Node& node);

// JSON with comments (//, #, /* */) and trailing commas. The top is a block.
[[nodiscard]] Node read_json(std::string_view text, const std::string& name, Problems& problems);

// One YAML document, a block at the top.
[[nodiscard]] Node read_yaml(std::string_view text, const std::string& name, Problems& problems);

// By the file's ending: .yaml and .yml, else JSON. `name` stands for it in messages; `what` is "ds
// config", "recipe": a missing or empty file is said as such.
[[nodiscard]] Node read_document(const std::filesystem::path& file,
                                 const std::string& name,
                                 const std::string& what,
                                 Problems& problems);

// Adds `member`. If its key is there already, that is a problem naming both lines.
void add_member(Node& block, Member member, const std::string& name, Problems& problems);

}  // namespace zeroth::config
