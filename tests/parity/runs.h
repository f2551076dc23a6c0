#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/watched_communicator.h"
#include "parity/support.h"

// Whole trainings on ranks that are threads, to be held against each other: the same rows,
// cut in any way, under any settings.
namespace zeroth::parity {

enum class Rule { kAdamW, kSgd, kLamb };

struct Case {
  int stage = 0;
  int ranks = 1;
  std::int64_t rows = 8;  // of the global batch
  std::int64_t micro_rows = 8;
  bool lora = false;
  Rule rule = Rule::kAdamW;
  double dropout = 0;
  at::ScalarType dtype = at::kFloat;
  int updates = 10;
  bool recompute = false;
  std::optional<bool> reduce_every_micro_step;
  zero::Tuning tuning;
  arithmetic::LossScaleOptions loss_scale{.initial_power = 10};
  bool share_frozen = true;
  kernels::Packing packing = kernels::Packing::kNone;
  std::filesystem::path folder = golden() / "transformers/llama3";
};

[[nodiscard]] std::string name_of(const Case& test);
void PrintTo(const Case& test, std::ostream* out);

// Calls and bytes of one rank, by "operation what": "all_gather weights", "reduce_scatter
// gradients", ...
struct Sent {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;

  bool operator==(const Sent&) const = default;
};

struct Outcome {
  at::Tensor weights;  // all that was trained, end to end
  std::vector<double> losses;
  std::vector<double> norms;
  std::int64_t model_state_bytes = 0;
  memory::ByPurpose at_peak{};
  std::int64_t trainable = 0;
  offload::Traffic offloaded;        // of all updates
  std::map<std::string, Sent> sent;  // of the last update
  std::vector<std::string> events;   // of the last update: "start reduce_scatter gradients of ..."
};

// Rank 0's outcome; all must be the same.
[[nodiscard]] Outcome run(const Case& test);

// Calls `body` for each rank of a group of threads, and throws what one of them threw.
void on_threads(int ranks, const std::function<void(std::shared_ptr<comm::Communicator>)>& body);

[[nodiscard]] Trainee trainee_of(const Case& test, std::shared_ptr<comm::Communicator> comm);
// The micro-steps of one rank: micro-step k takes rows [(k * ranks + rank) * micro, ...), which may
// be none.
[[nodiscard]] std::vector<models::TokenBatch> micro_steps_of(const Case& test, std::int64_t rank);
// Rows of very different lengths and masks.
[[nodiscard]] models::TokenBatch all_rows(std::int64_t rows);
[[nodiscard]] at::Tensor trained_values(const Trainee& trainee);

void expect_near(const Outcome& outcome, const Outcome& reference, double tolerance);
void expect_same_bits(const Case& a, const Case& b);
void expect_same_bits(const Outcome& a, const Outcome& b);

}  // namespace zeroth::parity
