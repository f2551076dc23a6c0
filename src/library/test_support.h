#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "comm/make.h"
#include "library/runtime_state.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

#include "zeroth/zeroth.h"

// Small networks whose gradients the batch gives, on ranks that are threads.
namespace zeroth::testing {

// Calls `body` on each rank; gives each rank's error, "" if there was none.
inline std::vector<std::string> errors_on(int ranks,
                                          const std::function<void(const Runtime&)>& body) {
  std::vector<std::unique_ptr<comm::Communicator>> group = comm::make_thread_group(ranks);
  std::vector<std::string> errors(group.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < group.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const std::shared_ptr<comm::Communicator> comm = std::move(group[rank]);
      try {
        body(RuntimeAccess::make(comm));
      } catch (const std::exception& error) {
        errors[rank] = error.what();  // telling the others is the library's work
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return errors;
}

inline void on_ranks(int ranks, const std::function<void(const Runtime&)>& body) {
  for (const std::string& error : errors_on(ranks, body)) {
    EXPECT_EQ(error, "");
  }
}

// Loss w . c with weight 1: the gradient is c, the batch's tensor.
inline Model slope(const at::Tensor& w) {
  return {
      .units = {{.name = "slope",
                 .parameters = {{.name = "w", .value = w}},
                 .forward =
                     [w](const at::Tensor&, const Pass& pass) {
                       return (w * pass.batch.tensors[0].to(w.scalar_type())).sum();
                     }}},
      .loss = [](const at::Tensor& output, const Batch&) { return Loss{output.to(at::kFloat)}; }};
}

inline Batch batch_of(const std::vector<double>& gradient) {
  return {.tensors = {at::tensor(gradient, at::kFloat)}, .rows = 1};
}

// Plain SGD without clipping, one row a micro-batch.
inline Config plain(double rate, int stage = 0, int accumulation = 1) {
  Config config;
  config.set("train_micro_batch_size_per_gpu", 1)
      .set("gradient_accumulation_steps", accumulation)
      .set("zero_optimization.stage", stage)
      .set("optimizer.type", "SGD")
      .set("optimizer.params.lr", rate)
      .set("gradient_clipping", 0.0);
  return config;
}

inline StepReport micro_step(Engine& engine, const Batch& batch) {
  engine.backward(engine.forward(batch));
  return engine.step();
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What `work` throws.
template <typename Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace zeroth::testing
