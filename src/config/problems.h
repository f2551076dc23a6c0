#pragma once

#include <string>
#include <utility>
#include <vector>

namespace zeroth::config {

// Everything that is wrong with the settings of a run, gathered so that one message shows it all.
class Problems {
 public:
  void add(std::string problem) { problems_.push_back(std::move(problem)); }

  [[nodiscard]] bool empty() const noexcept { return problems_.empty(); }

  // Throws an Error of kConfig with every problem in the order found; returns if there is none.
  void throw_if_any() const;

 private:
  std::vector<std::string> problems_;
};

}  // namespace zeroth::config
