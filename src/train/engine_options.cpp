#include "train/engine_options.h"

#include "base/error.h"

namespace zeroth::train {
namespace {

comm::NumberType number_type(config::NumberType type) {
  switch (type) {
    case config::NumberType::kBf16:
      return comm::NumberType::kBFloat16;
    case config::NumberType::kFp16:
      return comm::NumberType::kFloat16;
    case config::NumberType::kFp32:
      break;
  }
  return comm::NumberType::kFloat32;
}

std::optional<offload::IoKind> io_kind(config::OffloadIo io) {
  switch (io) {
    case config::OffloadIo::kUring:
      return offload::IoKind::kUring;
    case config::OffloadIo::kThreads:
      return offload::IoKind::kThreads;
    case config::OffloadIo::kAuto:
      break;
  }
  return std::nullopt;
}

// A processor's memory is the host's: cpu is where state is anyway.
zero::Place place_of(config::OffloadDevice device) {
  return device == config::OffloadDevice::kNvme ? zero::Place::kFile : zero::Place::kMemory;
}

zero::Resting resting_of(const config::OffloadSettings& settings) {
  return {.optimizer = place_of(settings.optimizer),
          .parameters = place_of(settings.parameters),
          .optimizer_folder = settings.optimizer_path,
          .parameter_folder = settings.parameter_path,
          .optimizer_share = settings.optimizer_ratio,
          .parameters_kept = settings.parameters_in_memory,
          .reads_ahead = settings.reads_ahead,
          .writes_behind = settings.writes_behind,
          .parameter_buffers = settings.parameter_buffers,
          .io = settings.transfers,
          .io_kind = io_kind(settings.io)};
}

zero::Tuning tuning_of(const config::ZeroSettings& settings,
                       const config::OffloadSettings& offload) {
  return {.reduce_bucket_elements = settings.reduce_bucket_elements,
          .allgather_bucket_elements = settings.allgather_bucket_elements,
          .overlap = settings.overlap_comm,
          .scatter = settings.reduce_scatter,
          .sub_group_elements = settings.sub_group_elements,
          .prefetch_elements = settings.prefetch_elements,
          .max_live_elements = settings.max_live_elements,
          .persistence_elements = settings.persistence_elements,
          .communication = number_type(settings.communication),
          .grad_accum = number_type(settings.grad_accum),
          .resting = resting_of(offload)};
}

// Allowed where the user says so; that is the default too, but of it nobody has thought.
engine::UnusedParameters unused_parameters(const config::RunConfig& config) {
  using engine::UnusedParameters;
  if (!config.zero.ignore_unused_parameters) {
    return UnusedParameters::kRefused;
  }
  return config.is_given("zero_optimization.ignore_unused_parameters")
             ? UnusedParameters::kAllowed
             : UnusedParameters::kRefusedAtFirst;
}

optim::AdamOptions adam_options(const config::OptimizerSettings& settings) {
  return {.beta1 = settings.beta1,
          .beta2 = settings.beta2,
          .epsilon = settings.epsilon,
          .weight_decay = settings.weight_decay,
          .bias_correction = settings.bias_correction};
}

}  // namespace

at::ScalarType compute_dtype(const config::RunConfig& config) {
  switch (config.model.precision) {
    case config::Precision::kBf16:
      return at::kBFloat16;
    case config::Precision::kFp16:
      return at::kHalf;
    case config::Precision::kFp32:
      break;
  }
  return at::kFloat;
}

engine::EngineOptions engine_options(const config::RunConfig& config,
                                     const arithmetic::Schedule& schedule) {
  return {.zero_stage = static_cast<int>(config.zero.stage),
          .reduce_every_micro_step = config.zero.reduce_every_micro_step,
          .tuning = tuning_of(config.zero, config.offload),
          .dtype = compute_dtype(config),
          .accumulation_steps = config.batch.accumulation,
          .max_grad_norm = config.optimizer.max_grad_norm,
          .schedule = schedule,
          .seed = config.seed,
          .share_frozen = config.model.share_frozen,
          .recompute_activations = config.finetune.gradient_checkpointing,
          .unused = unused_parameters(config),
          .loss_scale = config.model.loss_scale,
          .skip_non_finite = config.model.check_grad_overflow};
}

std::unique_ptr<optim::Optimizer> make_optimizer(const config::OptimizerSettings& settings) {
  switch (settings.kind) {
    case config::OptimizerKind::kAdamW:
      return optim::make_adamw(adam_options(settings));
    case config::OptimizerKind::kAdam:
      return optim::make_adam(adam_options(settings));
    case config::OptimizerKind::kSgd:
      return optim::make_sgd({.momentum = settings.momentum,
                              .dampening = settings.dampening,
                              .nesterov = settings.nesterov,
                              .weight_decay = settings.weight_decay});
    case config::OptimizerKind::kLion:
      return optim::make_lion({.beta1 = settings.beta1,
                               .beta2 = settings.beta2,
                               .weight_decay = settings.weight_decay});
    case config::OptimizerKind::kAdagrad:
      return optim::make_adagrad({.learning_rate_decay = settings.lr_decay,
                                  .epsilon = settings.epsilon,
                                  .weight_decay = settings.weight_decay});
    case config::OptimizerKind::kLamb:
      return optim::make_lamb({.beta1 = settings.beta1,
                               .beta2 = settings.beta2,
                               .epsilon = settings.epsilon,
                               .weight_decay = settings.weight_decay,
                               .bias_correction = settings.bias_correction,
                               .min_ratio = settings.min_coeff,
                               .max_ratio = settings.max_coeff});
  }
  throw Error(ErrorKind::kInternal, "an optimizer without a name");
}

}  // namespace zeroth::train
