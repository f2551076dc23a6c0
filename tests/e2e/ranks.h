#pragma once

#include <set>
#include <string>

#include "e2e/support.h"

// Several ranks as real processes: by --ranks, by mpirun, and as a torchrun-style launcher starts
// them.
namespace zeroth::e2e {

// How a global batch is cut.
[[nodiscard]] Words cut(int ranks, int micro, int accumulation, int stage);

class RankTest : public EndToEnd {
 protected:
  // What may be left behind: checked when a test is over, of all processes that it has started.
  void SetUp() override;
  void TearDown() override;

  [[nodiscard]] testing::Invocation invocation(const Words& words) const;
  [[nodiscard]] testing::Outcome zeroth(const Words& words, const Words& environment = {}) const;
  [[nodiscard]] testing::Outcome good(const Words& words) const;

  // The weights that full training of the cut leaves in the folder.
  [[nodiscard]] Tensors weights_of(const std::string& out, const Words& words) const;

  [[nodiscard]] static bool has_mpirun();
  // One rank for each of `hosts`; ranks of different names count as ranks of different hosts.
  [[nodiscard]] testing::Invocation under_mpirun(const Words& hosts, const Words& words) const;

 private:
  std::string mark_;                    // in the environment of every process of this test
  std::set<std::string> shared_files_;  // that were in /dev/shm before
};

}  // namespace zeroth::e2e
