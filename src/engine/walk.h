#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/options.h"
#include "models/unit.h"
#include "zero/shared_state.h"
#include "zero/unit_state.h"

#include <ATen/core/Tensor.h>

namespace zeroth::engine {

// The walk over the units: forward, then backward, each unit differentiated by itself (inputs
// detached at its border). Gathering, reduction and recomputation happen at unit borders.
//
//   forward:   prefetch what comes next, acquire, compute, release
//   backward:  the same from the end, and start the reduction of what is complete
//
// A rank without rows walks without computing, so that it takes part in the others' collectives.
class Walk {
 public:
  struct Options {
    bool recompute = false;  // units keep their input alone for backward
    UnusedParameters unused = UnusedParameters::kRefusedAtFirst;
    bool checks_graphs = false;
    std::uint64_t seed = 42;
  };

  // Collective.
  Walk(models::UnitList& units,
       std::shared_ptr<zero::SharedState> shared,
       std::vector<std::vector<std::size_t>> borrowed_from,
       const Options& options);

  // A training forward, to be followed by backward(): the last unit's output, a loss sum. The batch
  // is kept until then.
  struct Output {
    double sum = 0;
    std::int64_t weight = 0;
  };

  [[nodiscard]] Output forward(const models::TokenBatch& batch, std::int64_t update);
  // From `scale` times the loss. `last_of_window`: no micro-step of this update follows.
  void backward(double scale, bool last_of_window);
  // Without gradients.
  [[nodiscard]] at::Tensor infer(const models::ForwardContext& context);
  void infer_without_rows();

  // After the first window: every trainable parameter got a gradient on some rank, unless that is
  // allowed; kConfig on all ranks else. Collective.
  void require_all_used() const;

  [[nodiscard]] std::vector<zero::UnitState>& units() noexcept { return states_; }

  [[nodiscard]] const std::vector<zero::UnitState>& units() const noexcept { return states_; }

  // The first unit of the last forward whose output held inf or NaN, while its loss was not finite.
  [[nodiscard]] std::optional<std::size_t> first_non_finite() const noexcept {
    return first_non_finite_;
  }

 private:
  // What one unit's forward leaves for its backward.
  struct Tape {
    at::Tensor input;         // detached at the unit's border
    at::Tensor output;        // with the unit's own graph; undefined where it will be recomputed
    at::Tensor random_state;  // of before, where the unit draws random numbers and is recomputed
  };

  enum class Direction { kForward, kBackward };

  [[nodiscard]] models::ForwardContext context();
  [[nodiscard]] at::Tensor run_unit(std::size_t index,
                                    const models::ForwardContext& context,
                                    const at::Tensor& input);
  void tape_unit(std::size_t index, const at::Tensor& input);
  [[nodiscard]] at::Tensor recomputed(std::size_t index);
  [[nodiscard]] at::Tensor differentiate(std::size_t index, const at::Tensor& grad_output);
  void prefetch(std::size_t index, Direction direction);
  void acquire(std::size_t index);
  void release(std::size_t index);
  void pass_units(bool keep_last);
  void reduce(std::size_t index, bool last_of_window);
  void wait_for_reductions();
  void find_non_finite();
  void note_unused(std::size_t index);
  void refuse_unused() const;
  void require_connected(std::size_t index, const at::Tensor& output) const;
  void require_own_leaves(std::size_t index, const at::Tensor& output) const;
  [[noreturn]] void refuse_leaf(std::size_t index, const at::Tensor& leaf) const;
  void check_loss(const at::Tensor& loss) const;
  [[nodiscard]] memory::Purpose purpose_of(std::size_t index) const noexcept;
  void note(const char* phase) const;

  std::shared_ptr<zero::SharedState> shared_;
  std::vector<std::vector<std::size_t>> borrowed_from_;  // per unit: whose parameters it reads too
  std::vector<std::vector<std::size_t>> complete_at_;    // whose gradients are complete after it
  Options options_;
  std::vector<zero::UnitState> states_;
  std::vector<Tape> tape_;
  models::TokenBatch batch_;
  std::int64_t update_ = 0;
  std::int64_t counted_targets_ = 0;
  std::vector<std::size_t> reducing_;  // units whose sums are on their way
  std::optional<std::size_t> first_non_finite_;
  std::vector<std::string> unused_;
  std::vector<std::vector<bool>> used_;  // per unit and parameter: a gradient came at some time
};

}  // namespace zeroth::engine
