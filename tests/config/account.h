#pragma once

#include <string>
#include <vector>

#include "config/given.h"

namespace zeroth::config {

// The account of a file beside what stands in it.
struct Balance {
  std::vector<std::string> lost;      // leaves that no entry takes up
  std::vector<std::string> invented;  // entries for which there is no leaf
};

[[nodiscard]] Balance balance(const std::vector<std::string>& leaves,
                              const std::vector<Written>& account);

// The leaves that the account says it holds.
[[nodiscard]] std::size_t num_leaves(const std::vector<Written>& account);

}  // namespace zeroth::config
