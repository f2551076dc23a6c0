#include "config/replaced_blocks.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace zeroth::config {
namespace {

constexpr std::string_view kTypeKey = "lr_scheduler_type";
constexpr std::string_view kBlock = "scheduler.";

bool in_block(const Given& given) {
  return std::string_view(given.spelled).substr(0, kBlock.size()) == kBlock &&
         given.source.kind == SourceKind::kFile;
}

bool says_type(const Given& given) {
  return given.key->name == kTypeKey && !given.is_auto();
}

// The strongest word on the type from outside the block.
const Given* chosen_type(const std::vector<Given>& all) {
  const Given* best = nullptr;
  for (const Given& given : all) {
    const bool stronger = best == nullptr || given.source.kind > best->source.kind;
    if (says_type(given) && given.source.kind > SourceKind::kFile && stronger) {
      best = &given;
    }
  }
  return best;
}

// Another type than the chosen one, said by the block.
bool differs(const std::vector<Given>& all, const Given& chosen) {
  return std::any_of(all.begin(), all.end(), [&](const Given& given) {
    return says_type(given) && in_block(given) && given.value != chosen.value;
  });
}

}  // namespace

std::vector<IdleSetting> take_replaced_blocks(Gathered& gathered) {
  std::vector<IdleSetting> replaced;
  const Given* chosen = chosen_type(gathered.given);
  if (chosen == nullptr || !differs(gathered.given, *chosen)) {
    return replaced;
  }
  const std::string why = fmt::format("{} {} ({}) replaces the whole scheduler block",
                                      kTypeKey,
                                      shown(chosen->value),
                                      chosen->source.text);
  const auto gives_way = [](const Given& given) { return in_block(given) && !says_type(given); };
  for (const Given& given : gathered.given) {
    if (gives_way(given)) {
      Written& written = gathered.account[given.written];
      written.outcome = Outcome::kOverridden;
      written.note = why;
      replaced.push_back({.key = given.spelled,
                          .value = written.value,
                          .source = given.source.text,
                          .why = why,
                          .as_written = fmt::format("{} {}", given.spelled, shown(written.value))});
    }
  }
  std::erase_if(gathered.given, gives_way);
  return replaced;
}

}  // namespace zeroth::config
