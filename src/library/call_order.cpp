// The order of calls, and what to do instead. All of it is kUsage.
#include "base/error.h"
#include "library/engine_impl.h"
#include "library/micro_batch.h"
#include <fmt/format.h>

namespace zeroth {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::kUsage, message);
}

}  // namespace

std::string Engine::Impl::counting_advice() const {
  return fmt::format(
      "\n  Call step() after every micro-batch: it counts them, with {}, and updates at the "
      "boundary by itself. Do not count a second time in the program's own loop.",
      library::with_source(config_, "gradient_accumulation_steps"));
}

void Engine::Impl::require_forward_now() const {
  if (phase_ == Phase::kForwarded) {
    refuse(
        "forward() twice without backward() between them\n  For a loss without gradients call "
        "evaluate().");
  }
  if (phase_ == Phase::kBackwarded) {
    refuse("forward() after backward() without step() between them" + counting_advice());
  }
}

void Engine::Impl::require_backward_now(const StepLoss& loss) const {
  if (phase_ == Phase::kBackwarded) {
    refuse("backward() twice without step() between them" + counting_advice());
  }
  if (phase_ == Phase::kReady) {
    refuse("backward() without a forward() before it");
  }
  if (loss.engine_ != this || loss.ticket_ != ticket_) {
    refuse(
        "backward() of a loss that the last forward() of this engine did not give\n  Hand over "
        "what forward() returned. Nothing is to be divided by the accumulation steps or the "
        "ranks: the update follows the mean already.");
  }
}

void Engine::Impl::require_step_now() const {
  if (phase_ == Phase::kForwarded) {
    refuse("step() between forward() and backward()");
  }
  if (phase_ == Phase::kReady) {
    refuse("step() without forward() and backward() before it" + counting_advice());
  }
}

void Engine::Impl::set_window(std::int64_t num_micro_batches) {
  guarded([&] {
    if (phase_ != Phase::kReady || pass_->micro_step != 0) {
      refuse("set_window() inside a window\n  Call it before the window's first forward().");
    }
    if (num_micro_batches < 1 || num_micro_batches > config_.batch.accumulation) {
      refuse(
          fmt::format("a window of {} micro-batches, with {}\n  It may only be shorter, for an "
                      "epoch's last.",
                      num_micro_batches,
                      library::with_source(config_, "gradient_accumulation_steps")));
    }
    engine_->set_window(num_micro_batches);
  });
}

void Engine::Impl::require_whole_window(std::span<const Batch> micro_batches) const {
  const auto given = static_cast<std::int64_t>(micro_batches.size());
  const bool whole = given == config_.batch.accumulation;
  const bool last =
      given > 0 && given < config_.batch.accumulation && micro_batches.back().last_of_epoch;
  if (!whole && !last) {
    refuse(
        fmt::format("train_batch() with {} micro-batches, with {}\n  A window has as many; an "
                    "epoch's last may have fewer: set Batch::last_of_epoch in its last one.",
                    given,
                    library::with_source(config_, "gradient_accumulation_steps")));
  }
  if (pass_->micro_step != 0) {
    refuse("train_batch() inside a window\n  Finish the window with forward, backward and step.");
  }
}

}  // namespace zeroth
