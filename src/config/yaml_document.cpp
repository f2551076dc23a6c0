// YAML 1.2 through yaml-cpp, with the places that it knows and the checks that it leaves to us.
#include "base/error.h"
#include "config/document.h"
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace zeroth::config {
namespace {

// Aliases can name blocks that hold aliases: a few lines can stand for more than fits in memory.
constexpr std::size_t kMostNodes = 100'000;
constexpr std::size_t kDeepest = 64;

[[noreturn]] void refuse(const std::string& name, const YAML::Mark& mark, const std::string& what) {
  throw Error(
      ErrorKind::kConfig,
      mark.is_null()
          ? fmt::format("{} is not valid YAML: {}", name, what)
          : fmt::format(
                "{}:{}:{} is not valid YAML: {}", name, mark.line + 1, mark.column + 1, what));
}

class Reader {
 public:
  Reader(const std::string& name, Problems& problems) : name_(name), problems_(problems) {}

  Node read(const YAML::Node& yaml, std::size_t depth = 0) {
    if (++num_nodes_ > kMostNodes || depth > kDeepest) {
      refuse(name_, yaml.Mark(), "it holds more than a configuration can");
    }
    Node node;
    node.line = line_of(yaml);
    switch (yaml.Type()) {
      case YAML::NodeType::Scalar:
        read_scalar(yaml, node);
        break;
      case YAML::NodeType::Sequence:
        node.kind = Node::Kind::kList;
        for (const YAML::Node& item : yaml) {
          node.items.push_back(read(item, depth + 1));
        }
        break;
      case YAML::NodeType::Map:
        node.kind = Node::Kind::kBlock;
        for (const auto& pair : yaml) {
          read_member(pair.first, pair.second, node, depth);
        }
        break;
      default:
        break;
    }
    return node;
  }

 private:
  static std::size_t line_of(const YAML::Node& yaml) {
    return yaml.Mark().is_null() ? 0 : static_cast<std::size_t>(yaml.Mark().line) + 1;
  }

  // yaml-cpp tells quotes by the tag "!"; a plain scalar's is "?".
  void read_scalar(const YAML::Node& yaml, Node& node) {
    const std::string& tag = yaml.Tag();
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(name_, yaml.Mark(), fmt::format("the tag {} means nothing here", tag));
    }
    node.text = yaml.Scalar();
    node.kind = tag == "!" ? Node::Kind::kText : Node::Kind::kPlain;
    const bool null_word = node.text == "null" || node.text == "Null" || node.text == "NULL" ||
                           node.text == "~" || node.text.empty();
    if (node.kind == Node::Kind::kPlain && null_word) {
      node.kind = Node::Kind::kNull;
    }
  }

  void read_member(const YAML::Node& key, const YAML::Node& value, Node& block, std::size_t depth) {
    if (!key.IsScalar()) {
      refuse(name_, key.Mark(), "a key is a word");
    }
    if (key.Scalar() == "<<") {
      refuse(name_, key.Mark(), "merge keys (<<) are not read; write the keys out");
    }
    add_member(block,
               {.key = key.Scalar(), .line = line_of(key), .value = read(value, depth + 1)},
               name_,
               problems_);
  }

  const std::string& name_;
  Problems& problems_;
  std::size_t num_nodes_ = 0;
};

}  // namespace

Node read_yaml(std::string_view text, const std::string& name, Problems& problems) {
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.empty() || documents[0].IsNull()) {
      throw Error(ErrorKind::kConfig, fmt::format("the file is empty: {}", name));
    }
    if (documents.size() > 1) {
      refuse(name, documents[1].Mark(), "a second document; a configuration is one");
    }
    if (!documents[0].IsMap()) {
      refuse(name, documents[0].Mark(), "a configuration is a block of \"key: value\" lines");
    }
    return Reader(name, problems).read(documents[0]);
  } catch (const YAML::Exception& error) {
    refuse(name, error.mark, error.msg);
  }
}

}  // namespace zeroth::config
