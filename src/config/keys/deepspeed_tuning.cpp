#include "config/keys/deepspeed.h"

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kFixedSizes = "batch sizes are what is written, on any number of ranks";
constexpr auto kNoTrials = "settings are what is written: none are tried out";

Declarations elasticity_keys() {
  return {
      refused(key("elasticity.enabled", boolean(), false, "choose batch sizes to suit the ranks"),
              {false},
              "batch sizes are not chosen for you; write train_batch_size, which any number of "
              "ranks that divides it can keep"),
      detail(key("elasticity.max_train_batch_size",
                 integer(kAtLeastOne, "rows"),
                 2000,
                 "most rows of an update to choose"),
             kFixedSizes),
      detail(key("elasticity.micro_batch_sizes",
                 numbers(),
                 nullptr,
                 "rows of a forward to choose from"),
             kFixedSizes),
      detail(key("elasticity.min_gpus", integer(kAtLeastOne, "ranks"), 1, "fewest ranks to suit"),
             kFixedSizes),
      detail(key("elasticity.max_gpus", integer(kAtLeastOne, "ranks"), 10000, "most ranks to suit"),
             kFixedSizes),
      detail(key("elasticity.min_time",
                 integer(kNotNegative, "minutes"),
                 0,
                 "shortest time between two changes of ranks"),
             kFixedSizes),
      detail(key("elasticity.prefer_larger_batch",
                 boolean(),
                 true,
                 "choose the larger of two sizes that suit alike"),
             kFixedSizes),
      harmless(key("elasticity.prefer_large_batch",
                   boolean(),
                   nullptr,
                   "prefer_larger_batch as DeepSpeed's documents spell it"),
               "DeepSpeed's code calls it prefer_larger_batch, and no size is chosen here"),
      detail(key("elasticity.ignore_non_elastic_batch_info",
                 boolean(),
                 false,
                 "let chosen sizes replace written ones"),
             kFixedSizes),
      detail(key("elasticity.num_gpus_per_node",
                 integer(kAtLeastOne, "ranks"),
                 1,
                 "ranks that come and go together"),
             kFixedSizes),
      detail(key("elasticity.model_parallel_size",
                 integer(kAtLeastOne, "ranks"),
                 1,
                 "ranks that split one model, in the choice"),
             kFixedSizes),
      detail(key("elasticity.version", number(), 0.2, "which rule chooses"), kFixedSizes),
  };
}

Declarations trial_keys() {
  return {
      refused(key("autotuning.enabled", boolean(), false, "try settings out in short runs"),
              {false},
              "no settings are tried out; write the batch sizes and the stage, and leave "
              "autotuning out"),
      detail(key("autotuning.fast", boolean(), true, "try stages and micro-batches alone"),
             kNoTrials),
      detail(key("autotuning.results_dir", text(), nullptr, "folder for the results of trials"),
             kNoTrials),
      detail(key("autotuning.exps_dir", text(), nullptr, "folder for the set-ups of trials"),
             kNoTrials),
      detail(key("autotuning.overwrite", boolean(), true, "remove the folders of earlier trials"),
             kNoTrials),
      detail(key("autotuning.start_profile_step",
                 integer(kAtLeastOne, "updates"),
                 3,
                 "first update of a trial that is measured"),
             kNoTrials),
      detail(key("autotuning.end_profile_step",
                 integer(kAtLeastOne, "updates"),
                 5,
                 "last update of a trial that is measured"),
             kNoTrials),
      detail(key("autotuning.metric",
                 one_of({"throughput", "latency", "flops"}),
                 "throughput",
                 "what makes a trial good"),
             kNoTrials),
      detail(key("autotuning.metric_path", text(), nullptr, "file with a trial's measure"),
             kNoTrials),
      detail(key("autotuning.tuner_type",
                 one_of({"gridsearch", "random", "model_based"}),
                 "gridsearch",
                 "in which order settings are tried"),
             kNoTrials),
      detail(key("autotuning.tuner_early_stopping",
                 integer(kAtLeastOne),
                 5,
                 "trials without gain before they end"),
             kNoTrials),
      detail(key("autotuning.tuner_num_trials", integer(kAtLeastOne), 50, "most trials"),
             kNoTrials),
      detail(key("autotuning.arg_mappings",
                 named_entries(),
                 nullptr,
                 "options of the script that set what is tried"),
             kNoTrials),
  };
}

Declarations trial_sizes() {
  const Takes rows = integer(kAtLeastOne, "rows");
  return {
      detail(key("autotuning.max_train_batch_size", rows, nullptr, "most rows of an update to try"),
             kNoTrials),
      detail(key("autotuning.min_train_batch_size", rows, 1, "fewest rows of an update to try"),
             kNoTrials),
      detail(key("autotuning.max_train_micro_batch_size_per_gpu",
                 rows,
                 1024,
                 "most rows of a forward to try"),
             kNoTrials),
      detail(key("autotuning.min_train_micro_batch_size_per_gpu",
                 rows,
                 1,
                 "fewest rows of a forward to try"),
             kNoTrials),
      detail(key("autotuning.num_tuning_micro_batch_sizes",
                 integer(kAtLeastOne),
                 3,
                 "numbers of rows to try"),
             kNoTrials),
      detail(key("autotuning.mp_size",
                 integer(kAtLeastOne, "ranks"),
                 1,
                 "ranks that split one model in trials"),
             kNoTrials),
      detail(key("autotuning.model_info.profile",
                 boolean(),
                 false,
                 "measure the model before the trials"),
             kNoTrials),
      detail(key("autotuning.model_info.num_params",
                 integer(kAtLeastOne),
                 nullptr,
                 "parameters, for the choice of trials"),
             kNoTrials),
      detail(key("autotuning.model_info.hidden_size",
                 integer(kAtLeastOne),
                 nullptr,
                 "hidden size, for the choice of trials"),
             kNoTrials),
      detail(key("autotuning.model_info.num_layers",
                 integer(kAtLeastOne),
                 nullptr,
                 "layers, for the choice of trials"),
             kNoTrials),
      detail(key("autotuning.model_info_path",
                 text(),
                 nullptr,
                 "file with the model's measures for the trials"),
             kNoTrials),
  };
}

}  // namespace

Declarations tuning_keys() {
  Declarations keys = elasticity_keys();
  for (Declarations more : {trial_keys(), trial_sizes()}) {
    keys.insert(keys.end(), more.begin(), more.end());
  }
  return keys;
}

}  // namespace zeroth::config::deepspeed
