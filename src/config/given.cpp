#include "config/given.h"

#include <array>

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

}  // namespace

void give(Gathered& gathered,
          const Declaration& key,
          Json value,
          Source source,
          std::string spelled,
          Problems& problems) {
  const std::size_t written = gathered.account.size();
  gathered.account.push_back(
      {.path = spelled, .value = value, .source = source.text, .num_leaves = leaves_of(value)});
  if (!key.parts) {
    gathered.given.push_back(
        {&key, std::move(value), std::move(source), std::move(spelled), written});
    return;
  }
  try {
    std::vector<Part> parts = key.parts(value);
    if (parts.empty()) {
      gathered.account[written].outcome = Outcome::kWithoutEffect;
      gathered.account[written].note = "this is how it is anyway";
    }
    for (Part& part : parts) {
      const Declaration* target = find_declaration(part.key);
      ZEROTH_CHECK(target != nullptr, "{} stands for {}, which is no key", key.name, part.key);
      gathered.given.push_back({target, std::move(part.value), source, spelled, written});
    }
  } catch (const Error& error) {
    problems.add({.kind = ProblemKind::kType,
                  .key = key.name,
                  .message = fmt::format("{} {} ({})", spelled, error.what(), source.text),
                  .sources = {source.text}});
  }
}

}  // namespace zeroth::config
