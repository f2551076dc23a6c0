#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace zeroth {

struct RuntimeOptions {
  std::int64_t threads = 0;      // of each rank; 0: its share of this machine's processors
  double start_timeout_s = 120;  // a rank that has not joined by then is named
};

// The ranks of a run, and which of them this process is. Copies stand for the same run.
class Runtime {
 public:
  // Joins the ranks that a launcher has started: `zeroth launch`, torchrun and its like, mpirun or
  // srun. Without a launcher there is one rank. Blocks until all are there; once in a process.
  [[nodiscard]] static Runtime from_environment(const RuntimeOptions& options = {});

  [[nodiscard]] std::int64_t rank() const noexcept;
  [[nodiscard]] std::int64_t size() const noexcept;

  // A line on standard output, from rank 0 alone.
  void print(const std::string& text) const;
  // Waits for all ranks.
  void barrier() const;

 private:
  struct State;
  friend struct RuntimeAccess;

  explicit Runtime(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

// What main() of a program does: joins the ranks, runs `program`, and returns the code to end with.
// What it throws is told once, ends the other ranks within seconds, and decides the code
// (docs/errors.md).
[[nodiscard]] int run(const std::function<void(Runtime& runtime)>& program,
                      const RuntimeOptions& options = {});

}  // namespace zeroth
