#include <exception>
#include <thread>

#include "comm/make.h"
#include "parity/support.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

// The stage costs memory, not meaning: the same rows give the same weights in any stage, on any
// number of ranks, cut in any way. Ranks are threads here.
namespace zeroth::parity {
namespace {

struct Case {
  int stage = 0;
  int ranks = 1;
  std::int64_t micro_rows = 8;
  bool lora = false;
  bool sgd = false;
  double dropout = 0;
  at::ScalarType dtype = at::kFloat;
  std::int64_t bucket = 500'000'000;
  int updates = 10;
};

struct Outcome {
  at::Tensor weights;  // all that was trained, end to end
  std::vector<double> losses;
  std::vector<double> norms;
  std::int64_t model_state_bytes = 0;
  std::int64_t trainable = 0;
};

constexpr std::int64_t kRows = 8;

// Rows of very different lengths and masks.
models::TokenBatch all_rows() {
  constexpr std::int64_t kTokens = 24;
  const at::Tensor ids =
      (at::arange(0, kRows * kTokens, at::kLong) * 97 % 509 + 3).view({kRows, kTokens});
  at::Tensor labels = ids.clone();
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::int64_t length = 3 + row * 3;
    labels[row].narrow(0, length, kTokens - length).fill_(-100);
    labels[row].narrow(0, 0, 1 + row % 3).fill_(-100);
  }
  return batch_of(ids, labels);
}

Trainee trainee_of(const Case& test, std::shared_ptr<comm::Communicator> comm) {
  TraineeOptions options{.folder = golden() / "transformers/llama3"};
  options.model.dtype = test.dtype;
  if (test.lora) {
    options.model.lora = shapes::LoraSettings{.rank = 4, .alpha = 8, .dropout = test.dropout};
  }
  if (test.sgd) {
    options.optimizer = optim::make_sgd({.momentum = 0.9});
  }
  options.engine = {.zero_stage = test.stage,
                    .tuning = {.reduce_bucket_elements = test.bucket},
                    .max_grad_norm = 0.5,
                    .schedule = constant_rate(test.sgd ? 0.1 : 1e-3)};
  options.comm = std::move(comm);
  return make_trainee(std::move(options));
}

// The micro-steps of one rank: micro-step k takes rows [(k * ranks + rank) * micro, ...), which may
// be none.
std::vector<models::TokenBatch> micro_steps_of(const Case& test, std::int64_t rank) {
  const models::TokenBatch rows = all_rows();
  std::vector<models::TokenBatch> micro_steps;
  const std::int64_t rows_a_step = test.micro_rows * test.ranks;
  for (std::int64_t first = 0; first < kRows; first += rows_a_step) {
    const std::int64_t begin = std::min(kRows, first + rank * test.micro_rows);
    const std::int64_t count = std::min(test.micro_rows, kRows - begin);
    micro_steps.push_back(count > 0 ? rows_of(rows, begin, count) : models::TokenBatch{});
  }
  return micro_steps;
}

Outcome run_rank(const Case& test, std::shared_ptr<comm::Communicator> comm) {
  at::set_num_threads(1);
  const std::int64_t rank = comm->rank();
  Trainee trainee = trainee_of(test, std::move(comm));
  Outcome outcome;
  for (int update = 0; update < test.updates; ++update) {
    const engine::StepReport report = train_window(*trainee.engine, micro_steps_of(test, rank));
    outcome.losses.push_back(report.loss.mean());
    outcome.norms.push_back(report.grad_norm);
  }
  std::vector<at::Tensor> values;
  for (const auto& unit : trainee.model.units) {
    for (const models::Parameter& parameter : unit->parameters()) {
      if (parameter.trainable) {
        values.push_back(trainee.engine->parameter_value(parameter.name).flatten());
      }
    }
  }
  outcome.weights = at::cat(values);
  outcome.model_state_bytes = trainee.engine->tally().model_state_bytes();
  outcome.trainable = trainee.model.num_trainable();
  return outcome;
}

// Every rank's outcome; all must be the same.
Outcome run(const Case& test) {
  auto group = comm::make_thread_group(test.ranks);
  std::vector<Outcome> outcomes(group.size());
  std::vector<std::exception_ptr> errors(group.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      try {
        outcomes[rank] = run_rank(test, std::move(group[rank]));
      } catch (...) {
        errors[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const auto& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
  for (const Outcome& outcome : outcomes) {
    EXPECT_TRUE(at::equal(outcome.weights, outcomes.front().weights));
    EXPECT_EQ(outcome.losses, outcomes.front().losses);
  }
  return outcomes.front();
}

std::string name_of(const Case& test) {
  return "stage" + std::to_string(test.stage) + "_ranks" + std::to_string(test.ranks) + "_micro" +
         std::to_string(test.micro_rows) + (test.lora ? "_lora" : "_full") +
         (test.sgd ? "_sgd" : "_adamw") + (test.dropout > 0 ? "_dropout" : "");
}

void PrintTo(const Case& test, std::ostream* out) {
  *out << name_of(test);
}

// What is trained, and how; the cuts of one are compared in one test, for they share a reference
// and the time that a program takes to start.
std::vector<Case> kinds() {
  return {{},
          {.sgd = true},
          {.lora = true},
          {.lora = true, .sgd = true},
          {.lora = true, .dropout = 0.3},
          {.lora = true, .sgd = true, .dropout = 0.3}};
}

// Every stage of every cut but the plain one.
std::vector<Case> cuts_of(const Case& kind) {
  std::vector<Case> cases;
  for (const auto& [ranks, micro] : {std::pair{1, 8}, {1, 1}, {2, 2}, {4, 1}}) {
    for (int stage = 0; stage <= 3; ++stage) {
      Case& cut = cases.emplace_back(kind);
      cut.stage = stage;
      cut.ranks = ranks;
      cut.micro_rows = micro;
    }
  }
  cases.erase(cases.begin());
  return cases;
}

class Stages : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(Kinds, Stages, testing::ValuesIn(kinds()), [](const auto& test) {
  const Case& kind = test.param;
  return std::string(kind.lora ? "lora" : "full") + (kind.sgd ? "_sgd" : "_adamw") +
         (kind.dropout > 0 ? "_dropout" : "");
});

void expect_near(const Outcome& outcome, const Outcome& reference, double tolerance) {
  EXPECT_LT(relative_norm(outcome.weights, reference.weights), tolerance);
  ASSERT_EQ(outcome.losses.size(), reference.losses.size());
  for (std::size_t update = 0; update < outcome.losses.size(); ++update) {
    EXPECT_NEAR(outcome.losses[update] / reference.losses[update], 1.0, tolerance);
  }
}

// One rank, eight rows at once, no stage: what all others are held against.
TEST_P(Stages, N20_GiveTheWeightsOfOneRankWithoutStages) {
  const Outcome reference = run(GetParam());
  for (const Case& test : cuts_of(GetParam())) {
    SCOPED_TRACE(name_of(test));
    expect_near(run(test), reference, 1e-5);
  }
}

TEST(N20, StagesTrainAlikeAtEveryStep) {
  Case test{.ranks = 2, .micro_rows = 2, .updates = 20};
  const Outcome reference = run(test);
  for (test.stage = 1; test.stage <= 3; ++test.stage) {
    SCOPED_TRACE(name_of(test));
    expect_near(run(test), reference, 1e-6);
  }
}

void expect_same_bits(const Case& a, const Case& b) {
  const Outcome first = run(a);
  const Outcome second = run(b);
  EXPECT_TRUE(at::equal(first.weights, second.weights)) << name_of(a) << " and " << name_of(b);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.norms, second.norms);
}

TEST(StageBits, ZeroAndOneAgreeAndTwoAndThree) {
  for (const int ranks : {2, 4}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      expect_same_bits({.stage = 0, .ranks = ranks, .micro_rows = 1, .dtype = dtype},
                       {.stage = 1, .ranks = ranks, .micro_rows = 1, .dtype = dtype});
      expect_same_bits({.stage = 2, .ranks = ranks, .micro_rows = 1, .dtype = dtype},
                       {.stage = 3, .ranks = ranks, .micro_rows = 1, .dtype = dtype});
    }
  }
}

TEST(StageBits, AllFourAgreeWithoutAccumulation) {
  for (const bool lora : {false, true}) {
    const Case plain{.stage = 0, .ranks = 2, .micro_rows = 4, .lora = lora};
    for (int stage = 1; stage <= 3; ++stage) {
      Case other = plain;
      other.stage = stage;
      expect_same_bits(plain, other);
    }
  }
}

TEST(StageBits, BucketsChangeNone) {
  for (int stage = 0; stage <= 3; ++stage) {
    expect_same_bits({.stage = stage, .ranks = 2, .micro_rows = 2},
                     {.stage = stage, .ranks = 2, .micro_rows = 2, .bucket = 700});
  }
}

// DESIGN contract 3, bytes per trainable parameter in mixed precision.
TEST(ModelStates, TakeTheBytesOfTheFormulas) {
  for (const int ranks : {1, 2, 4}) {
    const auto n = static_cast<double>(ranks);
    const std::vector<double> expected{18.0, 6.0 + 12.0 / n, 2.0 + 16.0 / n, 18.0 / n};
    for (int stage = 0; stage <= 3; ++stage) {
      const Outcome outcome =
          run({.stage = stage, .ranks = ranks, .micro_rows = 2, .dtype = at::kBFloat16});
      const double bytes =
          static_cast<double>(outcome.model_state_bytes) / static_cast<double>(outcome.trainable);
      EXPECT_NEAR(bytes / expected[static_cast<std::size_t>(stage)], 1.0, 0.02)
          << "stage " << stage << " on " << ranks << " ranks";
    }
  }
}

}  // namespace
}  // namespace zeroth::parity
