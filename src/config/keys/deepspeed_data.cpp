#include "config/keys/deepspeed.h"

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kAllRows = "every epoch has every row once, in shuffled order";
constexpr auto kAllTokens = "every layer sees every token";
constexpr auto kFixedBatch = "an update has the rows that train_batch_size says";
constexpr auto kAllLayers = "every update uses every layer";
constexpr auto kNoEigenvalues = "nothing depends on eigenvalues, so none are computed";

Declarations sampling_keys() {
  const std::string sampling = "data_efficiency.data_sampling.";
  const std::string batching = sampling + "dynamic_batching.";
  return {
      refused(key("data_efficiency.enabled", flag(false), "choose rows and tokens by difficulty"),
              {false},
              "every row and token is trained; leave data_efficiency out"),
      detail(
          key("data_efficiency.seed", whole(kNotNegative, 1234), "where the choice of rows starts"),
          kAllRows),
      detail(key(sampling + "enabled", flag(false), "choose rows"), kAllRows),
      detail(key(sampling + "num_epochs",
                 whole(kAtLeastOne, 1000, "epochs"),
                 "most passes over the rows"),
             kAllRows),
      detail(
          key(sampling + "num_workers", whole(kNotNegative, 0), "processes that load chosen rows"),
          kAllRows),
      detail(key(sampling + "pin_memory", flag(false), "lock the pages of chosen rows"), kAllRows),
      detail(key(sampling + "curriculum_learning.enabled", flag(false), "easy rows first"),
             kAllRows),
      detail(key(sampling + "curriculum_learning.data_cluster_path",
                 text(),
                 "where rows lie sorted by difficulty"),
             kAllRows),
      detail(key(sampling + "curriculum_learning.curriculum_metrics",
                 block(),
                 "measures of difficulty, of any names"),
             kAllRows),
      detail(key(batching + "enabled", flag(false), "as many rows as give equal tokens"),
             kFixedBatch),
      detail(key(batching + "metrics_path", text(), "where the lengths of rows stand"),
             kFixedBatch),
      detail(key(batching + "lr_scaling_method",
                 one_of({"linear", "sqrt", "none"}, "linear"),
                 "how the learning rate follows the number of rows"),
             kFixedBatch),
      detail(key(batching + "min_batch_size", whole(kAtLeastOne, 1, "rows"), "fewest rows"),
             kFixedBatch),
      detail(key(batching + "max_batch_size", whole(kAtLeastOne, nullptr, "rows"), "most rows"),
             kFixedBatch),
      detail(key(batching + "sequence_picking_order",
                 one_of({"random", "seqlen", "dataloader"}, "dataloader"),
                 "in which order rows fill a batch"),
             kFixedBatch),
      detail(key(batching + "max_tokens",
                 whole(kAtLeastOne, nullptr, "tokens"),
                 "most tokens of a batch"),
             kFixedBatch),
      detail(key(batching + "verbose", flag(false), "print the batches that were formed"),
             kFixedBatch),
  };
}

Declarations routing_keys() {
  const std::string ltd = "data_efficiency.data_routing.random_ltd.";
  return {
      detail(key("data_efficiency.data_routing.enabled", flag(false), "choose tokens"), kAllTokens),
      detail(key(ltd + "enabled", flag(false), "middle layers skip tokens by chance"), kAllTokens),
      detail(key(ltd + "total_layer_num",
                 whole(kAtLeastOne, nullptr, "layers"),
                 "layers that the model has"),
             kAllTokens),
      detail(key(ltd + "random_ltd_layer_num",
                 whole(kNotNegative, nullptr, "layers"),
                 "layers that skip tokens"),
             kAllTokens),
      detail(key(ltd + "random_ltd_layer_id", number_list(), "which layers skip tokens"),
             kAllTokens),
      detail(key(ltd + "model_mask_name", text(), "name of the mask that shrinks too"), kAllTokens),
      detail(key(ltd + "model_type",
                 one_of({"encoder", "decoder"}),
                 "kind of model that skips tokens"),
             kAllTokens),
      detail(key(ltd + "hidden_state_order",
                 one_of({"batch_seq_dim", "seq_batch_dim"}),
                 "order of dims where tokens are skipped"),
             kAllTokens),
      detail(key(ltd + "micro_batch_size",
                 whole(kAtLeastOne, nullptr, "rows"),
                 "rows of a forward that skips tokens"),
             kAllTokens),
      detail(key(ltd + "global_batch_size",
                 whole(kAtLeastOne, nullptr, "rows"),
                 "rows of an update that skips tokens"),
             kAllTokens),
  };
}

Declarations routing_schedules() {
  const std::string ltd = "data_efficiency.data_routing.random_ltd.";
  return {
      detail(key(ltd + "random_ltd_schedule.min_value",
                 whole(kAtLeastOne, nullptr, "tokens"),
                 "tokens that are left at the start"),
             kAllTokens),
      detail(key(ltd + "random_ltd_schedule.max_value",
                 whole(kAtLeastOne, nullptr, "tokens"),
                 "tokens that are left at the end"),
             kAllTokens),
      detail(key(ltd + "random_ltd_schedule.schedule_type",
                 one_of({"fixed_linear"}),
                 "how the tokens that are left grow"),
             kAllTokens),
      detail(key(ltd + "random_ltd_schedule.schedule_config.require_steps",
                 whole(kAtLeastOne, nullptr, "updates"),
                 "updates until no token is skipped"),
             kAllTokens),
      detail(key(ltd + "random_ltd_schedule.schedule_config.seq_per_step",
                 whole(kAtLeastOne, nullptr, "tokens"),
                 "tokens that are left grow by this"),
             kAllTokens),
      detail(key(ltd + "layer_token_lr_schedule.enabled",
                 flag(false),
                 "the learning rate follows the tokens that are left"),
             kAllTokens),
      detail(key(ltd + "layer_token_lr_schedule.total_layer_tokens",
                 whole(kAtLeastOne, nullptr, "tokens"),
                 "tokens, times layers, of the whole run"),
             kAllTokens),
      detail(key(ltd + "layer_token_lr_schedule.warmup_type",
                 one_of({"linear", "log"}),
                 "how the learning rate rises with tokens times layers"),
             kAllTokens),
      detail(key(ltd + "layer_token_lr_schedule.warmup_layer_tokens",
                 whole(kNotNegative, nullptr, "tokens"),
                 "tokens, times layers, of the warm-up"),
             kAllTokens),
  };
}

Declarations curriculum_keys() {
  const std::string schedule = "curriculum_learning.schedule_config.";
  return {
      refused(key("curriculum_learning.enabled", flag(false), "short rows first, then longer"),
              {false},
              "rows keep their length; leave curriculum_learning out and write cutoff_len"),
      detail(key("curriculum_learning.curriculum_type",
                 one_of({"seqlen"}, "seqlen"),
                 "what makes a row difficult"),
             kAllRows),
      detail(key("curriculum_learning.min_difficulty",
                 whole(kAtLeastOne, nullptr, "tokens"),
                 "length of rows at the start"),
             kAllRows),
      detail(key("curriculum_learning.max_difficulty",
                 whole(kAtLeastOne, nullptr, "tokens"),
                 "length of rows at the end"),
             kAllRows),
      detail(key("curriculum_learning.schedule_type",
                 one_of({"fixed_linear", "fixed_root", "fixed_discrete", "custom"}),
                 "how the length of rows grows"),
             kAllRows),
      detail(key(schedule + "total_curriculum_step",
                 whole(kAtLeastOne, nullptr, "updates"),
                 "updates until rows are whole"),
             kAllRows),
      detail(key(schedule + "difficulty_step",
                 whole(kAtLeastOne, nullptr, "tokens"),
                 "lengths grow by multiples of this"),
             kAllRows),
      detail(key(schedule + "root_degree",
                 whole(kAtLeastOne),
                 "lengths grow as a root of this degree"),
             kAllRows),
      detail(key(schedule + "difficulty", number_list(), "lengths, one after the other"), kAllRows),
      detail(key(schedule + "max_step", number_list(), "updates at which lengths change"),
             kAllRows),
  };
}

Declarations layer_keys() {
  return {
      refused(key("progressive_layer_drop.enabled", flag(false), "skip layers by chance"),
              {false},
              "every update uses every layer; leave progressive_layer_drop out"),
      detail(key("progressive_layer_drop.theta",
                 number(kShare, 1.0),
                 "share of layers that are kept at last"),
             kAllLayers),
      detail(key("progressive_layer_drop.gamma",
                 number(kNotNegative, 0.001),
                 "how fast layers come to be skipped"),
             kAllLayers),
      refused(key("eigenvalue.enabled", flag(false), "compute eigenvalues of the loss"),
              {false},
              "they serve quantize_training, which is refused too; leave eigenvalue out"),
      detail(key("eigenvalue.verbose", flag(false), "print eigenvalues"), kNoEigenvalues),
      detail(key("eigenvalue.max_iter", whole(kAtLeastOne, 100), "most rounds for an eigenvalue"),
             kNoEigenvalues),
      detail(key("eigenvalue.tol", number(kPositive, 0.01), "change at which the rounds end"),
             kNoEigenvalues),
      detail(key("eigenvalue.stability",
                 number(kNotNegative, 1e-6),
                 "guard against division by zero in the rounds"),
             kNoEigenvalues),
      detail(key("eigenvalue.gas_boundary_resolution",
                 whole(kAtLeastOne, 1, "updates"),
                 "updates between two computations of eigenvalues"),
             kNoEigenvalues),
      detail(key("eigenvalue.layer_name",
                 text("bert.encoder.layer"),
                 "name of the layers whose eigenvalues are computed"),
             kNoEigenvalues),
      detail(key("eigenvalue.layer_num",
                 whole(kNotNegative, 0, "layers"),
                 "layers whose eigenvalues are computed"),
             kNoEigenvalues),
  };
}

}  // namespace

Declarations data_efficiency_keys() {
  return joined(
      {sampling_keys(), routing_keys(), routing_schedules(), curriculum_keys(), layer_keys()});
}

}  // namespace zeroth::config::deepspeed
