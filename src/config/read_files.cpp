#include "config/read_files.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

SourceKind strength_of(Dialect dialect) {
  return dialect == Dialect::kRecipe ? SourceKind::kRecipe : SourceKind::kFile;
}

constexpr auto kTwice = "the key stands twice";
constexpr auto kEmpty = "an empty block says nothing";

// Walks one document down to its leaves.
class Walk {
 public:
  Walk(Dialect dialect, const std::string& file, Gathered& gathered, Problems& problems)
      : dialect_(dialect), file_(file), gathered_(gathered), problems_(problems) {}

  void block(const Node& node, const std::string& prefix) {
    for (const Member& member : node.members) {
      const std::string path = prefix.empty() ? member.key : prefix + "." + member.key;
      visit(path, member);
    }
  }

 private:
  void visit(const std::string& path, const Member& member) {
    const Node& value = member.value;
    const bool inner = value.kind == Node::Kind::kBlock && !value.members.empty();
    if (member.again) {
      settle(path, member, Outcome::kRefused, kTwice);
    } else if (member.key.substr(0, 1) == "_") {
      notice_comment(path, member);
      settle(path, member, Outcome::kWithoutEffect, "a key that begins with _ is a comment");
    } else if (const Declaration* key = find_in(dialect_, path)) {
      known(*key, path, member);
    } else if (is_block(dialect_, path)) {
      in_block(path, member, inner);
    } else {
      problems_.add(unknown(path, member));
      settle(path, member, Outcome::kRefused, "unknown key");
    }
  }

  // A note needs no word; a key that somebody switched off does.
  void notice_comment(const std::string& path, const Member& member) {
    const std::string bare = path.substr(0, path.size() - member.key.size()) + member.key.substr(1);
    if (find_in(dialect_, bare) != nullptr || is_block(dialect_, bare)) {
      gathered_.notices.push_back(
          fmt::format("{}: {} is commented out by its _: not read", at(member.line), path));
    }
  }

  // Looking for what was meant takes a while; nobody reads a hundredth advice.
  [[nodiscard]] Problem unknown(const std::string& path, const Member& member) const {
    constexpr std::size_t kMostAdvice = 100;
    if (problems_.all().size() < kMostAdvice) {
      return unknown_key(dialect_, path, at(member.line));
    }
    return {.kind = ProblemKind::kUnknown,
            .key = path,
            .message = fmt::format("{}: unknown key \"{}\"", at(member.line), path),
            .sources = {at(member.line)}};
  }

  void in_block(const std::string& path, const Member& member, bool inner) {
    const Node& value = member.value;
    if (inner) {
      block(value, path);
    } else if (value.kind == Node::Kind::kBlock || value.kind == Node::Kind::kNull ||
               (value.kind == Node::Kind::kList && value.items.empty())) {
      settle(path, member, Outcome::kWithoutEffect, kEmpty);
    } else {
      problems_.add(
          {.kind = ProblemKind::kType,
           .key = path,
           .message = fmt::format(
               "{}: {} takes a block of keys, not {}", at(member.line), path, kind_name(value)),
           .sources = {at(member.line)}});
      settle(path, member, Outcome::kRefused, "wrong type");
    }
  }

  void known(const Declaration& key, const std::string& path, const Member& member) {
    const Node& value = member.value;
    if (value.kind == Node::Kind::kNull) {
      settle(path, member, Outcome::kWithoutEffect, "null gives no value");
      return;
    }
    const bool inline_file = key.name == "deepspeed" && value.kind == Node::Kind::kBlock;
    if (inline_file && value.members.empty()) {
      settle(path, member, Outcome::kWithoutEffect, kEmpty);
      return;
    }
    if (inline_file) {
      gather(value, Dialect::kDeepSpeed, file_, gathered_, problems_);
      return;
    }
    const ParsedValue parsed = parse_node(key, value);
    if (!parsed.error.empty()) {
      problems_.add({.kind = parsed.out_of_range ? ProblemKind::kRange : ProblemKind::kType,
                     .key = key.name,
                     .message = fmt::format("{}: {} {}", at(member.line), path, parsed.error),
                     .sources = {at(member.line)}});
      settle(path, member, Outcome::kRefused, parsed.error);
      return;
    }
    Statement statement;
    statement.value = parsed.value;
    statement.written = key.type == ValueType::kChoice ? Json(value.text) : parsed.value;
    statement.source = {strength_of(dialect_), at(member.line)};
    statement.spelled = path;
    give(gathered_, key, std::move(statement), problems_);
    settle_repeated(path, value);
  }

  // The user's own block may hold a key twice too.
  void settle_repeated(const std::string& path, const Node& block) {
    for (const Member& member : block.members) {
      if (member.again) {
        settle(path + "." + member.key, member, Outcome::kRefused, kTwice);
      } else {
        settle_repeated(path + "." + member.key, member.value);
      }
    }
  }

  // Enters a leaf, or every leaf of a block, with its outcome.
  void settle(const std::string& path,
              const Member& member,
              Outcome outcome,
              const std::string& note) {
    const Node& value = member.value;
    if (value.kind == Node::Kind::kBlock && !value.members.empty()) {
      for (const Member& inner : value.members) {
        settle(path + "." + inner.key, inner, outcome, note);
      }
      return;
    }
    gathered_.account.push_back({.path = path,
                                 .value = to_json(value),
                                 .source = at(member.line),
                                 .outcome = outcome,
                                 .note = note});
  }

  [[nodiscard]] std::string at(std::size_t line) const { return fmt::format("{}:{}", file_, line); }

  Dialect dialect_;
  const std::string& file_;
  Gathered& gathered_;
  Problems& problems_;
};

// The file that the strongest source names, e.g. for --deepspeed.
const Given* strongest(const Gathered& gathered, const std::string& key) {
  const Given* best = nullptr;
  for (const Given& given : gathered.given) {
    if (given.key->name == key && (best == nullptr || given.source.kind > best->source.kind)) {
      best = &given;
    }
  }
  return best;
}

// A file by its name alone, unless another of that name has been read.
std::string short_name(const std::string& file, const Gathered& gathered) {
  const std::string name = std::filesystem::path(file).filename().string();
  const bool taken =
      std::any_of(gathered.account.begin(), gathered.account.end(), [&](const Written& w) {
        return w.source.substr(0, w.source.rfind(':')) == name;
      });
  return taken ? file : name;
}

}  // namespace

void gather_file(const std::string& file,
                 const std::string& what,
                 Dialect dialect,
                 Gathered& gathered,
                 Problems& problems) {
  try {
    const std::string name = short_name(file, gathered);
    const Node document = read_document(file, name, what, problems);
    gather(document, dialect, name, gathered, problems);
  } catch (const Error& error) {
    problems.add(
        {.kind = ProblemKind::kFile, .key = "", .message = error.what(), .sources = {file}});
  }
}

namespace {

bool is_off(const Given& given) {
  return given.value == "none" || given.value == "None" || given.value == "null";
}

void gather_deepspeed(const std::string& text, Gathered& gathered, Problems& problems) {
  if (text.find_first_not_of(" \t\r\n") != std::string::npos &&
      text[text.find_first_not_of(" \t\r\n")] == '{') {
    const std::string name = "--deepspeed";
    try {
      gather(read_json(text, name, problems), Dialect::kDeepSpeed, name, gathered, problems);
    } catch (const Error& error) {
      problems.add({.kind = ProblemKind::kFile, .key = "deepspeed", .message = error.what()});
    }
    return;
  }
  gather_file(text, "ds config", Dialect::kDeepSpeed, gathered, problems);
}

}  // namespace

void gather(const Node& document,
            Dialect dialect,
            const std::string& file,
            Gathered& gathered,
            Problems& problems) {
  Walk(dialect, file, gathered, problems).block(document, "");
}

void gather_files(const std::string& recipe, Gathered& gathered, Problems& problems) {
  if (!recipe.empty()) {
    gather_file(recipe, "recipe", Dialect::kRecipe, gathered, problems);
  }
  const Given* accelerate = strongest(gathered, "accelerate_config");
  if (accelerate != nullptr && !is_off(*accelerate)) {
    const std::string file = accelerate->value.get<std::string>();
    gather_file(file, "Accelerate config", Dialect::kAccelerate, gathered, problems);
  }
  const Given* deepspeed = strongest(gathered, "deepspeed");
  if (deepspeed != nullptr && !is_off(*deepspeed)) {
    const std::string file = deepspeed->value.get<std::string>();
    gather_deepspeed(file, gathered, problems);
  }
}

}  // namespace zeroth::config
