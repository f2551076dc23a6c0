#pragma once

#include <string>

#include "e2e/ranks.h"

// Runs that are saved, stopped and gone on with.
namespace zeroth::e2e {

// Twelve updates of two rows over two epochs with all that has a memory: warm-up, dropout,
// clipping.
[[nodiscard]] Words long_run(const std::string& out, const Words& more = {});

class Checkpoints : public RankTest {
 protected:
  // A run's checkpoint as if the run had been killed after it: later ones, the result and later
  // records are gone.
  void cut_back_to(const std::string& out, int update) const;

  // All that the two runs have left: results bit by bit, records but for their times.
  void expect_same_run(const std::string& out, const std::string& reference) const;

  [[nodiscard]] std::string weights_in(const std::string& folder) const;  // the file's bytes
  [[nodiscard]] bool has(const std::string& name) const;
};

}  // namespace zeroth::e2e
