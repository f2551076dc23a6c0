#include "config/field.h"
#include "config/keys/deepspeed.h"
#include <fmt/format.h>

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kFp16 = "fp16";
constexpr auto kSection = "Precision";
constexpr auto kWideMaster = "master weights and moments are fp32 here; leave it out";
constexpr auto kNoApex = "Apex is not used here";

std::map<std::string, std::string> number_types() {
  return {{"float32", "fp32"}, {"float16", "fp16"}, {"bfloat16", "bf16"}};
}

Declaration number_type(std::string path, std::string help) {
  return spelt(key(std::move(path), one_of({"fp32", "fp16", "bf16"}), std::move(help)),
               number_types());
}

Declaration acting(Declaration key, Condition without_effect, Field field) {
  key.section = kSection;
  key.commands = kUpdates;
  key.without_effect = std::move(without_effect);
  key.field = std::move(field);
  return key;
}

template <typename Member>
Field loss_scale_field(Member member) {
  return field(&RunConfig::model, &ModelSettings::loss_scale, member);
}

// "fp16.loss_scale is 128: it stays"
std::optional<std::string> only_with_a_moving_scale(const Values& values) {
  if (const auto why = only_when_on(kFp16)(values)) {
    return why;
  }
  if (values.is("fp16.loss_scale", 0)) {
    return std::nullopt;
  }
  return fmt::format("fp16.loss_scale is {}: it stays", shown(values["fp16.loss_scale"]));
}

Declarations loss_scale_keys() {
  using Options = arithmetic::LossScaleOptions;
  return {
      acting(key("fp16.loss_scale",
                 number(kNotNegative, 0.0),
                 "fixed factor of the loss; 0: it follows overflows"),
             only_when_on(kFp16),
             loss_scale_field(&Options::fixed)),
      acting(key("fp16.initial_scale_power",
                 whole(Range{.min = 0, .max = 127}, 16),
                 "the first factor of the loss is 2 to this power"),
             only_with_a_moving_scale,
             loss_scale_field(&Options::initial_power)),
      acting(key("fp16.loss_scale_window",
                 whole(Range{.min = 1, .max = 1e15}, 1000, "updates"),
                 "updates without overflow after which the factor doubles"),
             only_with_a_moving_scale,
             loss_scale_field(&Options::window)),
      acting(key("fp16.hysteresis",
                 whole(Range{.min = 1, .max = 1e15}, 2, "overflows"),
                 "the factor is halved at this overflow; those before are borne"),
             only_with_a_moving_scale,
             loss_scale_field(&Options::hysteresis)),
      acting(key("fp16.consecutive_hysteresis",
                 flag(false),
                 "an update without overflow forgives the overflows before it"),
             only_with_a_moving_scale,
             loss_scale_field(&Options::consecutive_hysteresis)),
      acting(key("fp16.min_loss_scale",
                 number(kPositive, 1.0),
                 "the factor falls no lower; an overflow there ends the run"),
             only_with_a_moving_scale,
             loss_scale_field(&Options::min_scale)),
  };
}

Declarations fp16_keys() {
  const Condition in_fp16 = only_when_on(kFp16);
  return {
      harmless(key("fp16.auto_cast", flag(false), "cast a model's inputs to fp16"),
               "a model's inputs are token ids: they have nothing to cast"),
      refused(key("fp16.fp16_master_weights_and_grads",
                  flag(false),
                  "keep master weights and gradients in fp16"),
              {false},
              kWideMaster,
              in_fp16),
      harmless(key("fp16.opt_level",
                   one_of({"o0", "o1", "o2", "o3"}),
                   "a word of Apex's that strayed into this block"),
               "DeepSpeed knows it in the amp block alone, and fp16 has one mode here",
               in_fp16),
  };
}

// Some files carry fp16's keys over to bf16.
Declaration carried_over(const std::string& word, Form form, std::string help, std::string why) {
  return harmless(once(key("bf16." + word, std::move(form), std::move(help)), {"bfloat16." + word}),
                  std::move(why));
}

Declaration bf16_key(const std::string& word, bool default_value, std::string help) {
  return once(key("bf16." + word, flag(default_value), std::move(help)), {"bfloat16." + word});
}

Declarations bf16_keys() {
  const Condition in_bf16 = only_when_on("bf16");
  return {
      harmless(bf16_key("immediate_grad_update",
                        false,
                        "add each gradient to its fp32 sum as soon as it is there"),
               "a unit's gradients go into their fp32 sums right after its backward, either way"),
      acting(bf16_key("check_grad_overflow",
                      true,
                      "skip updates whose gradients are not finite, at every stage; false: apply "
                      "them, as DeepSpeed does"),
             in_bf16,
             field(&RunConfig::model, &ModelSettings::check_grad_overflow)),
      refused(
          bf16_key(
              "bf16_master_weights_and_grads", false, "keep master weights and gradients in bf16"),
          {false},
          kWideMaster,
          in_bf16),
      refused(bf16_key("bf16_optimizer_states", false, "keep moments in bf16"),
              {false},
              kWideMaster,
              in_bf16),
      carried_over("loss_scale",
                   number(kNotNegative),
                   "fixed factor of the loss, as in fp16",
                   "bf16 has the range of fp32: its loss is not scaled"),
      carried_over("initial_scale_power",
                   whole({.min = 0, .max = 127}),
                   "first factor of the loss, as in fp16",
                   "bf16 needs no loss scale, so there is no first one"),
      carried_over("loss_scale_window",
                   whole(kAtLeastOne, nullptr, "updates"),
                   "updates until the factor doubles, as in fp16",
                   "bf16 needs no loss scale, so there is none to raise"),
      carried_over("hysteresis",
                   whole(kAtLeastOne, nullptr, "updates"),
                   "overflows until the factor is halved, as in fp16",
                   "bf16 needs no loss scale, so there is none to lower"),
      carried_over("min_loss_scale",
                   number(kPositive),
                   "the factor's lower bound, as in fp16",
                   "bf16 needs no loss scale, so there is none to bound"),
  };
}

Declarations apex_keys() {
  return {
      refused(or_auto(key("amp.enabled", flag(false), "mixed precision by Apex")),
              {false},
              "Apex is not used; write bf16.enabled"),
      detail(or_auto(key("amp.opt_level",
                         one_of({"o0", "o1", "o2", "o3"}),
                         "how much of the model computes in fp16")),
             kNoApex),
      detail(
          key("amp.loss_scale", anything(), "Apex's factor of the loss, a number or \"dynamic\""),
          kNoApex),
      detail(key("amp.min_loss_scale", number(kNotNegative), "lower bound of Apex's factor"),
             kNoApex),
      detail(key("amp.max_loss_scale", number(kNotNegative), "upper bound of Apex's factor"),
             kNoApex),
      detail(key("amp.master_weights", flag(nullptr), "Apex keeps fp32 weights beside fp16"),
             kNoApex),
      detail(key("amp.keep_batchnorm_fp32", flag(nullptr), "Apex leaves batch norms in fp32"),
             kNoApex),
      detail(key("amp.cast_model_type", text(), "type Apex casts the model to"), kNoApex),
      detail(key("amp.cast_model_outputs", text(), "type Apex casts the outputs to"), kNoApex),
      detail(key("amp.patch_torch_functions", flag(nullptr), "Apex patches PyTorch"), kNoApex),
      detail(key("amp.num_losses", whole(kAtLeastOne), "losses that Apex scales"), kNoApex),
      detail(key("amp.verbosity", whole(kNotNegative), "how much Apex prints"), kNoApex),
      refused(key("torch_autocast.enabled", flag(false), "mixed precision by torch.autocast"),
              {false},
              "operations choose no types of their own here; write bf16.enabled"),
      detail(number_type("torch_autocast.dtype", "type of torch.autocast"),
             "there is no autocast here"),
      detail(key("torch_autocast.lower_precision_safe_modules",
                 names(),
                 "modules that torch.autocast may run in 16 bits"),
             "there is no autocast here"),
  };
}

std::vector<Part> mode_of(const Json& value) {
  return {{"bf16", value == "bf16"}, {kFp16, value == "fp16"}};
}

std::optional<std::string> only_with_sequence_ranks(const Values& values) {
  if (values.is("sequence_parallel_size", 1)) {
    return "sequence_parallel_size is 1: no rank shares its rows";
  }
  return std::nullopt;
}

Declarations type_keys() {
  return {
      stands_for(number_type("data_types.param_dtype",
                             "type in which the model computes; bf16.enabled says the same"),
                 mode_of),
      harmless(number_type("data_types.buffer_dtype",
                           "type of what a model keeps but never trains; fp32, or the one that the "
                           "model computes in"),
               "the models here keep no buffers: angles of positions are worked out in fp32"),
      planned(in_accelerate(
                  also(number_type("seq_parallel_communication_data_type",
                                   "type of gradients on their way between ranks that share a row"),
                       {"seq_parallel_comm_data_type"}),
                  "deepspeed_config.seq_parallel_communication_data_type"),
              {"fp32"},
              "ranks that share a row are not built yet",
              only_with_sequence_ranks),
  };
}

}  // namespace

Declarations precision_keys() {
  return joined({loss_scale_keys(), fp16_keys(), bf16_keys(), apex_keys(), type_keys()});
}

}  // namespace zeroth::config::deepspeed
