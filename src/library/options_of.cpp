#include "library/options_of.h"

namespace zeroth::library {

engine::EngineOptions engine_options(const config::RunConfig& config,
                                     const arithmetic::Schedule& schedule) {
  const bool bf16 = config.model.precision == config::Precision::kBf16;
  return {.zero_stage = static_cast<int>(config.zero.stage),
          .tuning = {.reduce_bucket_elements = config.zero.reduce_bucket_elements},
          .dtype = bf16 ? at::kBFloat16 : at::kFloat,
          .accumulation_steps = config.batch.accumulation,
          .max_grad_norm = config.optimizer.max_grad_norm,
          .schedule = schedule,
          .seed = config.seed};
}

std::unique_ptr<optim::Optimizer> make_optimizer(const config::OptimizerSettings& settings) {
  if (settings.kind == config::OptimizerKind::kSgd) {
    return optim::make_sgd({.momentum = settings.momentum, .weight_decay = settings.weight_decay});
  }
  return optim::make_adamw({.beta1 = settings.beta1,
                            .beta2 = settings.beta2,
                            .epsilon = settings.epsilon,
                            .weight_decay = settings.weight_decay});
}

}  // namespace zeroth::library
