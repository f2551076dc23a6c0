#include <chrono>

#include "base/error.h"
#include "parity/runs.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// Networks that are wrong, on two ranks: an error that names the place, on every rank, and never a
// hang.
namespace zeroth::parity {
namespace {

using CommPtr = std::shared_ptr<comm::Communicator>;
using engine::Engine;
using engine::EngineOptions;

// x w, where x is the batch's input; what else it does, the tests say.
class Product : public models::Unit {
 public:
  using Body = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& w)>;

  Product(const std::string& name, const std::string& parameter, Body body)
      : Unit(name), body_(std::move(body)) {
    parameters_.push_back(
        {.name = parameter, .value = at::ones({4}), .trainable = true, .decays = false});
  }

  [[nodiscard]] at::Tensor forward(const models::ForwardContext& context,
                                   const at::Tensor& input) override {
    const at::Tensor x = input.defined() ? input : context.batch.inputs[0];
    return body_(x, parameters_[0].value);
  }

  void hold(const at::Tensor& tensor) { parameters_[0].value = tensor; }

 private:
  Body body_;
};

at::Tensor product(const at::Tensor& x, const at::Tensor& w) {
  return x * w;
}

at::Tensor summed(const at::Tensor& x, const at::Tensor& w) {
  return (x * w).sum();
}

models::TokenBatch ones() {
  return {.num_targets = 1, .inputs = {at::ones({4})}};
}

// What each of two ranks is told, within the time in which a dead peer is noticed.
std::vector<std::string> errors_of(
    const std::function<void(const CommPtr& comm, models::UnitList& units)>& body) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> errors(2);
  on_threads(2, [&](const CommPtr& comm) {
    models::UnitList units;
    try {
      body(comm, units);
    } catch (const Error& error) {
      comm->abort(error.what());
      errors[static_cast<std::size_t>(comm->rank())] = error.what();
    }
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  return errors;
}

void expect_both(const std::vector<std::string>& errors, const std::vector<std::string>& words) {
  for (const std::string& error : errors) {
    for (const std::string& word : words) {
      EXPECT_NE(error.find(word), std::string::npos) << "'" << word << "' is not in: " << error;
    }
  }
}

TEST(BadNetwork, AParameterInTwoUnitsIsNamedWithBoth) {
  for (const bool by_name : {true, false}) {
    expect_both(errors_of([&](const CommPtr& comm, models::UnitList& units) {
                  units.push_back(std::make_unique<Product>("first", "w", product));
                  auto second = std::make_unique<Product>("second", by_name ? "w" : "v", summed);
                  if (!by_name) {
                    second->hold(units[0]->parameters()[0].value);
                  }
                  units.push_back(std::move(second));
                  Engine engine(units, optim::make_sgd({}), {.zero_stage = 2}, comm);
                }),
                {"first", "second", by_name ? "w" : "v", "two units"});
  }
}

TEST(BadNetwork, ALossWithoutAGradientIsNamed) {
  expect_both(
      errors_of([](const CommPtr& comm, models::UnitList& units) {
        units.push_back(std::make_unique<Product>(
            "only", "w", [](const auto& x, const auto& w) { return (x * w.detach()).sum(); }));
        Engine engine(units, optim::make_sgd({}), {.zero_stage = 3}, comm);
        (void)engine.forward(ones());
      }),
      {"only", "no gradient"});
}

TEST(BadNetwork, ALossThatIsNoNumberIsNamed) {
  expect_both(errors_of([](const CommPtr& comm, models::UnitList& units) {
                units.push_back(std::make_unique<Product>("only", "w", product));
                Engine engine(units, optim::make_sgd({}), {.zero_stage = 3}, comm);
                (void)engine.forward(ones());
              }),
              {"only", "4 numbers"});
}

// One rank leaves a branch out: with ignore_unused_parameters its gradient is zero there, without
// it the parameter is named on both ranks.
TEST(N44, AParameterUnusedOnOneRankIsZeroThereOrNamed) {
  for (int stage = 0; stage <= 3; ++stage) {
    for (const bool ignore : {true, false}) {
      const auto errors = errors_of([&](const CommPtr& comm, models::UnitList& units) {
        const bool uses = comm->rank() == 0;
        units.push_back(std::make_unique<Product>(
            "branch", "b", [uses](const at::Tensor& x, const at::Tensor& w) {
              return uses ? x * w : x * at::ones({4});
            }));
        units.push_back(std::make_unique<Product>("trunk", "t", summed));
        EngineOptions options{
            .zero_stage = stage, .max_grad_norm = 0, .schedule = constant_rate(1)};
        options.unused =
            ignore ? engine::UnusedParameters::kRefusedAtFirst : engine::UnusedParameters::kRefused;
        Engine engine(units, optim::make_sgd({}), options, comm);
        engine.backward(engine.forward(ones()));
        EXPECT_TRUE(engine.step().updated);
        // Half of a gradient of 1, since one of two targets used it.
        EXPECT_EQ(engine.parameter_value("b")[0].item<double>(), 0.5);
      });
      if (ignore) {
        EXPECT_EQ(errors, (std::vector<std::string>{"", ""})) << "stage " << stage;
      } else {
        expect_both(errors, {"b", "ignore_unused_parameters"});
      }
    }
  }
}

// A layer whose weight a second unit reads as well, recomputed: both uses count.
TEST(N43, AWeightUsedTwiceWithRecomputationSumsBothUses) {
  class Borrower : public models::Unit {
   public:
    explicit Borrower(models::Parameter* lent) : Unit("second use") { borrowed_.push_back(lent); }

    [[nodiscard]] at::Tensor forward(const models::ForwardContext&,
                                     const at::Tensor& input) override {
      return (input * borrowed_[0]->value).sum();
    }
  };

  for (int stage = 0; stage <= 3; ++stage) {
    const auto errors = errors_of([&](const CommPtr& comm, models::UnitList& units) {
      units.push_back(std::make_unique<Product>("first use", "w", product));
      units.push_back(std::make_unique<Borrower>(&units[0]->parameters()[0]));
      EngineOptions options{.zero_stage = stage, .max_grad_norm = 0, .schedule = constant_rate(1)};
      options.recompute_activations = true;
      Engine engine(units, optim::make_sgd({}), options, comm);
      engine.backward(engine.forward(ones()));
      EXPECT_TRUE(at::equal(engine.gradient_value("w"), at::full({4}, 2.0F)));  // of w * w
    });
    EXPECT_EQ(errors, (std::vector<std::string>{"", ""})) << "stage " << stage;
  }
}

// Ranks whose collectives differ: here by the size of a unit.
TEST(BadNetwork, RanksWithDifferentUnitsAreToldBothSides) {
  expect_both(errors_of([](const CommPtr& comm, models::UnitList& units) {
                auto unit = std::make_unique<Product>("only", "w", summed);
                unit->hold(at::ones({comm->rank() == 0 ? 4 : 400}));
                units.push_back(std::move(unit));
                Engine engine(units, optim::make_sgd({}), {.zero_stage = 2}, comm);
              }),
              {"rank 0 called", "rank 1 called"});
}

TEST(BadNetwork, AnErrorOfOneRankEndsTheOthersWithItsReason) {
  expect_both(errors_of([](const CommPtr& comm, models::UnitList& units) {
                const bool fails = comm->rank() == 1;
                units.push_back(std::make_unique<Product>(
                    "only", "w", [fails](const at::Tensor& x, const at::Tensor& w) {
                      if (fails) {
                        throw Error(ErrorKind::kData, "the row is torn");
                      }
                      return (x * w).sum();
                    }));
                Engine engine(units, optim::make_sgd({}), {.zero_stage = 3}, comm);
                engine.backward(engine.forward(ones()));
                (void)engine.step();
              }),
              {"the row is torn"});
}

}  // namespace
}  // namespace zeroth::parity
