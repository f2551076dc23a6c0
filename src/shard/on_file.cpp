#include "shard/on_file.h"

#include <algorithm>

#include "shard/kept.h"

namespace zeroth::shard {

std::vector<OnFile> on_file(const FileRule& rule, std::span<const std::int64_t> numels) {
  const auto state = kept_in_memory(numels, elements_kept(numels, rule.optimizer_share));
  const auto weights = kept_in_memory(numels, rule.parameters_kept);
  std::vector<OnFile> all;
  for (std::size_t unit = 0; unit < numels.size(); ++unit) {
    const bool optimizer = rule.optimizer && !state[unit];
    const bool passes = numels[unit] > rule.persistent_parameters;
    all.push_back({.optimizer = optimizer,
                   .gradients = optimizer && rule.gradients,
                   .parameters = rule.parameters && passes && !weights[unit]});
  }
  return all;
}

std::int64_t piece_elements(std::int64_t held, std::int64_t asked, bool passes) {
  constexpr std::int64_t kMostPassing = std::int64_t{2} << 20;
  const std::int64_t whole = asked <= 0 ? held : std::min(asked, held);
  if (!passes) {
    return whole;
  }
  const std::int64_t pages = std::min(whole, kMostPassing) / kPieceElements;
  return std::max(pages, std::int64_t{1}) * kPieceElements;
}

}  // namespace zeroth::shard
