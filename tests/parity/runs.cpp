#include "parity/runs.h"

#include <exception>
#include <mutex>
#include <ostream>
#include <thread>

#include "comm/make.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

namespace zeroth::parity {
namespace {

std::unique_ptr<optim::Optimizer> optimizer_of(Rule rule) {
  switch (rule) {
    case Rule::kSgd:
      return optim::make_sgd({.momentum = 0.9});
    case Rule::kLamb:
      return optim::make_lamb({.weight_decay = 0.01});
    case Rule::kAdamW:
      break;
  }
  return optim::make_adamw({});
}

// "gradients of layer 3" -> "gradients"
std::string kind_of(const comm::Traffic& traffic) {
  return traffic.operation + " " + traffic.label.substr(0, traffic.label.find(" of "));
}

// One rank's run, watched during its last update.
class Run {
 public:
  Run(const Case& test, std::shared_ptr<comm::Communicator> comm)
      : test_(test), rank_(comm->rank()), trainee_(trainee_of(test, watched(std::move(comm)))) {}

  Outcome outcome() {
    for (int update = 0; update < test_.updates; ++update) {
      watching_ = update + 1 == test_.updates;
      const engine::StepReport report =
          train_window(*trainee_.engine, micro_steps_of(test_, rank_));
      outcome_.losses.push_back(report.loss.mean());
      outcome_.norms.push_back(report.grad_norm);
    }
    watching_ = false;
    outcome_.offloaded = trainee_.engine->offload_traffic();
    outcome_.weights = trained_values(trainee_);
    outcome_.model_state_bytes = trainee_.engine->tally().model_state_bytes();
    outcome_.at_peak = trainee_.engine->tally().at_peak();
    outcome_.trainable = trainee_.model.num_trainable();
    return std::move(outcome_);
  }

 private:
  std::shared_ptr<comm::Communicator> watched(std::shared_ptr<comm::Communicator> inner) {
    return comm::make_watched_communicator(
        std::move(inner),
        {.started =
             [this](comm::Communicator&, const comm::Traffic& traffic) {
               if (watching_) {
                 Sent& sent = outcome_.sent[kind_of(traffic)];
                 ++sent.calls;
                 sent.bytes += traffic.bytes;
                 outcome_.events.push_back("start " + traffic.operation + " " + traffic.label);
               }
             },
         .waited =
             [this](const comm::Traffic& traffic) {
               if (watching_) {
                 outcome_.events.push_back("waited " + traffic.operation + " " + traffic.label);
               }
             }});
  }

  Case test_;
  std::int64_t rank_;
  bool watching_ = false;
  Outcome outcome_;
  Trainee trainee_;
};

}  // namespace

std::string name_of(const Case& test) {
  std::string name = "stage" + std::to_string(test.stage) + "_ranks" + std::to_string(test.ranks) +
                     "_micro" + std::to_string(test.micro_rows) + (test.lora ? "_lora" : "_full");
  name += test.rule == Rule::kSgd ? "_sgd" : test.rule == Rule::kLamb ? "_lamb" : "_adamw";
  name += test.dtype == at::kBFloat16 ? "_bf16" : test.dtype == at::kHalf ? "_fp16" : "";
  name += test.dropout > 0 ? "_dropout" : "";
  name += test.recompute ? "_recompute" : "";
  name += test.packing == kernels::Packing::kNone ? "" : "_packed";
  name += test.tuning.resting.optimizer == zero::Place::kFile ? "_state_on_file" : "";
  name += test.tuning.resting.parameters == zero::Place::kFile ? "_weights_on_file" : "";
  name += test.tuning.overlap ? "" : "_blocking";
  name += test.tuning.reduce_bucket_elements < 10'000 ? "_tiny_buckets" : "";
  return name;
}

void PrintTo(const Case& test, std::ostream* out) {
  *out << name_of(test);
}

models::TokenBatch all_rows(std::int64_t rows) {
  constexpr std::int64_t kTokens = 24;
  const at::Tensor ids = patterned_ids(rows, kTokens);
  at::Tensor labels = ids.clone();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t length = 3 + row % 8 * 3;
    labels[row].narrow(0, length, kTokens - length).fill_(-100);
    labels[row].narrow(0, 0, 1 + row % 3).fill_(-100);
  }
  return batch_of(ids, labels);
}

Trainee trainee_of(const Case& test, std::shared_ptr<comm::Communicator> comm) {
  TraineeOptions options{.folder = test.folder};
  options.model.dtype = test.dtype;
  if (test.lora) {
    options.model.lora = shapes::LoraSettings{.rank = 4, .alpha = 8, .dropout = test.dropout};
  }
  options.optimizer = optimizer_of(test.rule);
  options.engine.zero_stage = test.stage;
  options.engine.reduce_every_micro_step = test.reduce_every_micro_step;
  options.engine.tuning = test.tuning;
  options.engine.max_grad_norm = 0.5;
  options.engine.schedule = constant_rate(test.rule == Rule::kSgd ? 0.1 : 1e-3);
  options.engine.share_frozen = test.share_frozen;
  options.engine.pack_weights = test.packing;
  options.engine.recompute_activations = test.recompute;
  options.engine.loss_scale = test.loss_scale;
  options.comm = std::move(comm);
  return make_trainee(std::move(options));
}

std::vector<models::TokenBatch> micro_steps_of(const Case& test, std::int64_t rank) {
  const models::TokenBatch rows = all_rows(test.rows);
  std::vector<models::TokenBatch> micro_steps;
  const std::int64_t rows_a_step = test.micro_rows * test.ranks;
  for (std::int64_t first = 0; first < test.rows; first += rows_a_step) {
    const std::int64_t begin = std::min(test.rows, first + rank * test.micro_rows);
    const std::int64_t count = std::min(test.micro_rows, test.rows - begin);
    micro_steps.push_back(count > 0 ? rows_of(rows, begin, count) : models::TokenBatch{});
  }
  return micro_steps;
}

at::Tensor trained_values(const Trainee& trainee) {
  std::vector<at::Tensor> values;
  for (const auto& unit : trainee.model.units) {
    for (const models::Parameter& parameter : unit->parameters()) {
      if (parameter.trainable) {
        values.push_back(trainee.engine->parameter_value(parameter.name).flatten());
      }
    }
  }
  return at::cat(values);
}

void on_threads(int ranks, const std::function<void(std::shared_ptr<comm::Communicator>)>& body) {
  auto group = comm::make_thread_group(ranks);
  std::exception_ptr first;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (auto& member : group) {
    threads.emplace_back([&, comm = std::shared_ptr<comm::Communicator>(std::move(member))] {
      try {
        at::set_num_threads(1);
        body(comm);
      } catch (...) {
        const std::lock_guard lock(mutex);
        first = first ? first : std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (first) {
    std::rethrow_exception(first);
  }
}

Outcome run(const Case& test) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(test.ranks));
  on_threads(test.ranks, [&](const std::shared_ptr<comm::Communicator>& comm) {
    outcomes[static_cast<std::size_t>(comm->rank())] = Run(test, comm).outcome();
  });
  for (const Outcome& outcome : outcomes) {
    expect_same_bits(outcome, outcomes.front());
  }
  return outcomes.front();
}

void expect_near(const Outcome& outcome, const Outcome& reference, double tolerance) {
  EXPECT_LT(relative_norm(outcome.weights, reference.weights), tolerance);
  ASSERT_EQ(outcome.losses.size(), reference.losses.size());
  for (std::size_t update = 0; update < outcome.losses.size(); ++update) {
    EXPECT_NEAR(outcome.losses[update] / reference.losses[update], 1.0, tolerance);
  }
}

void expect_same_bits(const Outcome& a, const Outcome& b) {
  EXPECT_TRUE(at::equal(a.weights, b.weights));
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_EQ(a.norms, b.norms);
}

void expect_same_bits(const Case& a, const Case& b) {
  SCOPED_TRACE(name_of(a) + " and " + name_of(b));
  expect_same_bits(run(a), run(b));
}

}  // namespace zeroth::parity
