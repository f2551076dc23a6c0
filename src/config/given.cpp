#include "config/given.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include <fmt/format.h>

namespace zeroth::config {

const char* name_of(Outcome outcome) noexcept {
  constexpr std::array kNames{"in force", "overridden", "without effect", "planned", "refused"};
  return kNames.at(static_cast<std::size_t>(outcome));
}

namespace {

std::size_t leaves_of(const Json& value) {
  if (!value.is_object() || value.empty()) {
    return 1;
  }
  std::size_t leaves = 0;
  for (const Json& inner : value) {
    leaves += leaves_of(inner);
  }
  return leaves;
}

std::string with_underscores(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What to write where `spelled` stands now: in a file the path of its dialect.
std::string new_name(const Declaration& key, const std::string& spelled) {
  const Declaration* now = key.successor.empty() ? &key : find_declaration(key.successor);
  ZEROTH_CHECK(now != nullptr, "{} is followed by {}, which is no key", key.name, key.successor);
  for (const auto& [names, paths] :
       {std::pair(&key.deepspeed, &now->deepspeed), std::pair(&key.accelerate, &now->accelerate)}) {
    if (contains(*names, spelled) && !paths->empty()) {
      return paths->front();
    }
  }
  return now->name;
}

void notice_old_name(Gathered& gathered, const Declaration& key, const Statement& statement) {
  const std::string name = with_underscores(statement.spelled);
  if (key.successor.empty() && !contains(key.old_names, name)) {
    return;
  }
  const char* dashes = has_dashes(statement.source) ? "--" : "";
  gathered.notices.push_back(fmt::format("{0}: {1}{2} is an old name of {1}{3}",
                                         statement.source.text,
                                         dashes,
                                         statement.spelled,
                                         new_name(key, name)));
}

void refuse(const Declaration& key,
            const Statement& statement,
            const Error& error,
            Written& written,
            Problems& problems) {
  const bool refused = error.kind() == ErrorKind::kNotSupported;
  written.note = error.what();
  problems.add(
      {.kind = refused ? ProblemKind::kRefused : ProblemKind::kType,
       .key = key.name,
       .message =
           refused
               ? fmt::format("{}: {} {}: not supported: {}",
                             statement.source.text,
                             statement.spelled,
                             shown(statement.written),
                             error.what())
               : fmt::format("{} {} ({})", statement.spelled, error.what(), statement.source.text),
       .sources = {statement.source.text}});
}

std::vector<Part> parts_of(const Declaration& key, const Json& value) {
  const auto refused =
      key.refused_choices.find(value.is_string() ? value.get<std::string>() : std::string());
  if (refused != key.refused_choices.end()) {
    throw Error(ErrorKind::kNotSupported, refused->second);
  }
  return key.parts(value);
}

void give_parts(Gathered& gathered,
                const Declaration& key,
                const Statement& statement,
                std::size_t entry,
                Problems& problems) {
  Written& written = gathered.account[entry];
  try {
    std::vector<Part> parts = parts_of(key, statement.value);
    if (parts.empty()) {
      written.outcome = Outcome::kWithoutEffect;
      written.note = "this is how it is anyway";
    }
    for (Part& part : parts) {
      const Declaration* target = find_declaration(part.key);
      ZEROTH_CHECK(target != nullptr, "{} stands for {}, which is no key", key.name, part.key);
      gathered.given.push_back(
          {target, std::move(part.value), statement.source, statement.spelled, entry});
    }
  } catch (const Error& error) {
    refuse(key, statement, error, written, problems);
  }
}

}  // namespace

void give(Gathered& gathered, const Declaration& key, Statement statement, Problems& problems) {
  const std::size_t entry = gathered.account.size();
  gathered.account.push_back({.path = statement.spelled,
                              .value = unless_secret(key, statement.written),
                              .source = statement.source.text,
                              .num_leaves = leaves_of(statement.value)});
  notice_old_name(gathered, key, statement);
  if (key.parts) {
    give_parts(gathered, key, statement, entry, problems);
    return;
  }
  gathered.given.push_back({&key,
                            std::move(statement.value),
                            std::move(statement.source),
                            std::move(statement.spelled),
                            entry});
}

}  // namespace zeroth::config
