#include "config/keys/deepspeed.h"

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kFixedSizes = "batch sizes are what is written, on any number of ranks";
constexpr auto kNoTrials = "settings are what is written: none are tried out";

Declarations elasticity_keys() {
  return {
      refused(key("elasticity.enabled", flag(false), "choose batch sizes to suit the ranks"),
              {false},
              "batch sizes are not chosen for you; write train_batch_size, which any number of "
              "ranks that divides it can keep"),
      detail(key("elasticity.max_train_batch_size",
                 whole(kAtLeastOne, 2000, "rows"),
                 "most rows of an update to choose"),
             kFixedSizes),
      detail(key("elasticity.micro_batch_sizes", number_list(), "rows of a forward to choose from"),
             kFixedSizes),
      detail(key("elasticity.min_gpus", whole(kAtLeastOne, 1, "ranks"), "fewest ranks to suit"),
             kFixedSizes),
      detail(key("elasticity.max_gpus", whole(kAtLeastOne, 10000, "ranks"), "most ranks to suit"),
             kFixedSizes),
      detail(key("elasticity.min_time",
                 whole(kNotNegative, 0, "minutes"),
                 "shortest time between two changes of ranks"),
             kFixedSizes),
      detail(key("elasticity.prefer_larger_batch",
                 flag(true),
                 "choose the larger of two sizes that suit alike"),
             kFixedSizes),
      harmless(key("elasticity.prefer_large_batch",
                   flag(nullptr),
                   "prefer_larger_batch as DeepSpeed's documents spell it"),
               "DeepSpeed's code calls it prefer_larger_batch, and no size is chosen here"),
      detail(key("elasticity.ignore_non_elastic_batch_info",
                 flag(false),
                 "let chosen sizes replace written ones"),
             kFixedSizes),
      detail(key("elasticity.num_gpus_per_node",
                 whole(kAtLeastOne, 1, "ranks"),
                 "ranks that come and go together"),
             kFixedSizes),
      detail(key("elasticity.model_parallel_size",
                 whole(kAtLeastOne, 1, "ranks"),
                 "ranks that split one model, in the choice"),
             kFixedSizes),
      detail(key("elasticity.version", number(kNotNegative, 0.2), "which rule chooses"),
             kFixedSizes),
  };
}

Declarations trial_keys() {
  return {
      refused(key("autotuning.enabled", flag(false), "try settings out in short runs"),
              {false},
              "no settings are tried out; write the batch sizes and the stage, and leave "
              "autotuning out"),
      detail(key("autotuning.fast", flag(true), "try stages and micro-batches alone"), kNoTrials),
      detail(key("autotuning.results_dir", text(), "folder for the results of trials"), kNoTrials),
      detail(key("autotuning.exps_dir", text(), "folder for the set-ups of trials"), kNoTrials),
      detail(key("autotuning.overwrite", flag(true), "remove the folders of earlier trials"),
             kNoTrials),
      detail(key("autotuning.start_profile_step",
                 whole(kAtLeastOne, 3, "updates"),
                 "first update of a trial that is measured"),
             kNoTrials),
      detail(key("autotuning.end_profile_step",
                 whole(kAtLeastOne, 5, "updates"),
                 "last update of a trial that is measured"),
             kNoTrials),
      detail(key("autotuning.metric",
                 one_of({"throughput", "latency", "flops"}, "throughput"),
                 "what makes a trial good"),
             kNoTrials),
      detail(key("autotuning.metric_path", text(), "file with a trial's measure"), kNoTrials),
      detail(key("autotuning.tuner_type",
                 one_of({"gridsearch", "random", "model_based"}, "gridsearch"),
                 "in which order settings are tried"),
             kNoTrials),
      detail(key("autotuning.tuner_early_stopping",
                 whole(kAtLeastOne, 5),
                 "trials without gain before they end"),
             kNoTrials),
      detail(key("autotuning.tuner_num_trials", whole(kAtLeastOne, 50), "most trials"), kNoTrials),
      detail(
          key("autotuning.arg_mappings", block(), "options of the script that set what is tried"),
          kNoTrials),
  };
}

Declarations trial_sizes() {
  const auto rows = [](Json by_default) {
    return whole(kAtLeastOne, std::move(by_default), "rows");
  };
  return {
      detail(key("autotuning.max_train_batch_size", rows(nullptr), "most rows of an update to try"),
             kNoTrials),
      detail(key("autotuning.min_train_batch_size", rows(1), "fewest rows of an update to try"),
             kNoTrials),
      detail(key("autotuning.max_train_micro_batch_size_per_gpu",
                 rows(1024),
                 "most rows of a forward to try"),
             kNoTrials),
      detail(key("autotuning.min_train_micro_batch_size_per_gpu",
                 rows(1),
                 "fewest rows of a forward to try"),
             kNoTrials),
      detail(key("autotuning.num_tuning_micro_batch_sizes",
                 whole(kAtLeastOne, 3),
                 "numbers of rows to try"),
             kNoTrials),
      detail(key("autotuning.mp_size",
                 whole(kAtLeastOne, 1, "ranks"),
                 "ranks that split one model in trials"),
             kNoTrials),
      detail(
          key("autotuning.model_info.profile", flag(false), "measure the model before the trials"),
          kNoTrials),
      detail(key("autotuning.model_info.num_params",
                 whole(kAtLeastOne),
                 "parameters, for the choice of trials"),
             kNoTrials),
      detail(key("autotuning.model_info.hidden_size",
                 whole(kAtLeastOne),
                 "hidden size, for the choice of trials"),
             kNoTrials),
      detail(key("autotuning.model_info.num_layers",
                 whole(kAtLeastOne),
                 "layers, for the choice of trials"),
             kNoTrials),
      detail(key("autotuning.model_info_path",
                 text(),
                 "file with the model's measures for the trials"),
             kNoTrials),
  };
}

}  // namespace

Declarations tuning_keys() {
  return joined({elasticity_keys(), trial_keys(), trial_sizes()});
}

}  // namespace zeroth::config::deepspeed
