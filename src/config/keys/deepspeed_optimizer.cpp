#include "config/keys/deepspeed.h"

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kNoCompression = "optimizers with compressed gradients are refused";
constexpr auto kNoMuon = "Muon is refused";

Declarations adam_keys() {
  return {
      harmless(key("optimizer.params.torch_adam", flag(false), "use PyTorch's own Adam"),
               "there is one AdamW, and it computes what PyTorch's does"),
      harmless(key("optimizer.params.fp32_optimizer_states",
                   flag(true),
                   "keep moments in fp32 whatever the weights' type"),
               "moments are fp32 in every mode"),
      refused(key("optimizer.params.amsgrad", flag(false), "AdamW with a maximum of moments"),
              {false},
              "a third moment is not kept; leave it out"),
      refused(key("optimizer.params.max_grad_norm", number(kNotNegative), "clip the gradient norm"),
              {},
              "DeepSpeed does not take it there either; write gradient_clipping, at the top"),
      refused(key("optimizer.params.initial_accumulator_value",
                  number(kNotNegative, 0),
                  "what Adagrad's sums start from"),
              {0},
              "they start from zero; leave it out"),
      refused(key("optimizer.params.eps_inside_sqrt",
                  flag(false),
                  "LAMB adds its guard against division by zero under the root"),
              {false},
              "it is added to the root, as in the paper; leave it out"),
      harmless(key("optimizer.legacy_fusion",
                   flag(false),
                   "hand parameters to the fused optimizer one by one"),
               "the optimizer goes over flat shards in one pass"),
  };
}

Declarations compressed_keys() {
  return {
      detail(key("optimizer.params.freeze_step",
                 whole(kNotNegative, 100000, "updates"),
                 "updates before compression starts"),
             kNoCompression),
      detail(key("optimizer.params.cuda_aware", flag(false), "MPI may read a GPU's memory"),
             kNoCompression),
      detail(key("optimizer.params.comm_backend_name",
                 one_of({"nccl", "mpi", "hccl"}, "nccl"),
                 "library that carries compressed gradients"),
             kNoCompression),
      detail(key("optimizer.params.var_freeze_step",
                 whole(kNotNegative, 100000, "updates"),
                 "updates before 0/1 Adam keeps its second moment"),
             kNoCompression),
      detail(key("optimizer.params.var_update_scaler",
                 whole(kAtLeastOne, 16),
                 "how seldom 0/1 Adam renews its second moment"),
             kNoCompression),
      detail(key("optimizer.params.local_step_scaler",
                 whole(kAtLeastOne, 32678),
                 "how fast 0/1 Adam's local steps grow"),
             kNoCompression),
      detail(key("optimizer.params.local_step_clipper",
                 whole(kAtLeastOne, 16),
                 "most local steps of 0/1 Adam"),
             kNoCompression),
      detail(key("optimizer.params.coeff_beta",
                 number(kShare, 0.9),
                 "how slowly 1-bit LAMB's factors change while it warms up"),
             kNoCompression),
      detail(key("optimizer.params.factor_max",
                 number(kPositive, 4.0),
                 "upper bound of 1-bit LAMB's correction"),
             kNoCompression),
      detail(key("optimizer.params.factor_min",
                 number(kPositive, 0.5),
                 "lower bound of 1-bit LAMB's correction"),
             kNoCompression),
      detail(key("optimizer.params.factor_threshold",
                 number(kPositive, 0.1),
                 "largest change of 1-bit LAMB's correction in an update"),
             kNoCompression),
  };
}

Declarations muon_keys() {
  return {
      detail(key("optimizer.params.muon_lr",
                 number(kNotNegative),
                 "learning rate of the matrices that Muon trains"),
             kNoMuon),
      detail(key("optimizer.params.adam_lr",
                 number(kNotNegative),
                 "learning rate of what Muon leaves to Adam"),
             kNoMuon),
      detail(key("optimizer.params.ns_method", text("gram"), "how Muon makes a matrix orthogonal"),
             kNoMuon),
  };
}

}  // namespace

Declarations optimizer_parameters() {
  return joined({adam_keys(), compressed_keys(), muon_keys()});
}

}  // namespace zeroth::config::deepspeed
