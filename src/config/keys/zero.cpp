// ZeRO as far as it acts: what ranks keep in shards, and how gradients and weights travel between
// them.
#include "config/field.h"
#include "config/keys/forms.h"
#include "config/offload_names.h"

namespace zeroth::config {
namespace {

constexpr auto kSection = "ZeRO";
constexpr Range kElements{.min = 0, .max = 1e15};

using Condition = decltype(Declaration::without_effect);
using Reason = std::optional<std::string>;

template <typename Member>
Declaration acting(Declaration key, Condition without_effect, Member member) {
  key.section = kSection;
  key.commands = kUpdates;
  key.without_effect = std::move(without_effect);
  key.field = field(&RunConfig::zero, member);
  return key;
}

// A key of the zero_optimization block, known with and without "stage3_" as in DeepSpeed.
Declaration of_stage_3(const std::string& word, Form form, std::string help) {
  Declaration key = of_form("zero_optimization.stage3_" + word, std::move(form), std::move(help));
  key.deepspeed = {key.name, "zero_optimization." + word};
  return key;
}

Declaration in_block(const std::string& word, Form form, std::string help) {
  Declaration key = of_form("zero_optimization." + word, std::move(form), std::move(help));
  key.deepspeed = {key.name};
  return key;
}

Declaration or_auto(Declaration key) {
  key.may_be_auto = true;
  return key;
}

Form elements(Json by_default) {
  return whole(kElements, std::move(by_default), "elements");
}

// The stage also says what of a single rank's state may rest on file.
Reason only_with_ranks_or_files(const Values& values) {
  const bool files = values.is(kOptimizerDevice, "nvme") || values.is(kParamDevice, "nvme");
  return files ? std::nullopt : only_with_ranks(values);
}

Reason only_with_sharded_weights(const Values& values) {
  if (!values.is("zero_stage", 3)) {
    return "needs stage 3: no parameter memory is saved";
  }
  return values.is(kParamDevice, "nvme") ? std::nullopt : only_with_ranks(values);
}

// Something of stages 1 and 2. `at_0`, `at_3`: why not there.
Condition only_at_stages_1_and_2(std::string at_0, std::string at_3) {
  return [at_0 = std::move(at_0), at_3 = std::move(at_3)](const Values& values) -> Reason {
    if (values.is("zero_stage", 0)) {
      return at_0;
    }
    return values.is("zero_stage", 3) ? at_3 : only_with_ranks(values);
  };
}

Reason only_with_several_micro_steps(const Values& values) {
  if (values.is("gradient_accumulation_steps", 1)) {
    return "an update has one micro-step: gradient_accumulation_steps is 1";
  }
  return only_with_ranks(values);
}

// Whether a result is rounded is a question where shards of 16-bit weights are all there is.
Reason only_with_16_bit_shards(const Values& values) {
  if (!values.is("zero_stage", 3)) {
    return "needs stage 3: below it every rank has the whole weights";
  }
  if (values.is("finetuning_type", "lora")) {
    return "finetuning_type is lora: an adapter is written in fp32";
  }
  if (!values.is("bf16", true) && !values.is("fp16", true)) {
    return "the run computes in fp32, and so is its result";
  }
  return std::nullopt;
}

Declarations stage_keys() {
  Declaration stage{.name = "zero_stage",
                    .deepspeed = {"zero_optimization.stage"},
                    .accelerate = {"deepspeed_config.zero_stage"},
                    .type = ValueType::kInteger,
                    .range = {.min = 0, .max = 3},
                    .default_value = 0,
                    .help =
                        "what ranks keep in shards: 1 optimizer state, 2 gradients too, 3 "
                        "weights too"};
  stage = acting(std::move(stage), only_with_ranks_or_files, &ZeroSettings::stage);
  stage.commands = kRunFamily;
  return {std::move(stage)};
}

Declarations gradient_keys() {
  Declaration bucket = or_auto(
      of_form("reduce_bucket_size",
              elements(500000000),
              "gradients of one reduction between ranks, 0: a parameter at a time; changes no "
              "number"));
  bucket.deepspeed = {"zero_optimization.reduce_bucket_size"};
  Declaration every_step = of_form(
      "reduce_every_micro_step",
      flag(nullptr),
      "sum gradients over ranks after each micro-step; without it stages 2 and 3 do, 0 and 1 once "
      "an update. true at 0 and 1 makes all stages agree in every bit; false at 2 and 3 keeps "
      "whole gradients until the update, the memory of stage 1");
  every_step.deepspeed = {"zero_optimization.reduce_every_micro_step"};
  return {
      acting(std::move(bucket), only_with_ranks, &ZeroSettings::reduce_bucket_elements),
      acting(in_block("overlap_comm",
                      flag(true),
                      "sum gradients while backward goes on; the same bits either way"),
             only_with_ranks,
             &ZeroSettings::overlap_comm),
      acting(in_block("reduce_scatter",
                      flag(true),
                      "sum each gradient on its owner only; false: on every rank, the same bits"),
             only_at_stages_1_and_2("stage 0 needs every sum on every rank",
                                    "stage 3 has each gradient on its owner only"),
             &ZeroSettings::reduce_scatter),
      acting(std::move(every_step),
             only_with_several_micro_steps,
             &ZeroSettings::reduce_every_micro_step),
      acting(in_block("ignore_unused_parameters",
                      flag(true),
                      "go on when a trainable parameter got no gradient, as if it were zero; "
                      "false: an error that names it. Where nobody says so, none on any rank in "
                      "the first update is an error"),
             {},
             &ZeroSettings::ignore_unused_parameters),
  };
}

// Types in which gradients are kept or sent; what falls below them is lost (case N19).
Declaration number_type(std::string path, std::string help) {
  Declaration key =
      of_form(path, one_of(choices_of<NumberType>(), choices_of<NumberType>().front()), help);
  key.deepspeed = {std::move(path)};
  key.synonyms = {{"float32", "fp32"}, {"float16", "fp16"}, {"bfloat16", "bf16"}};
  return key;
}

Declarations number_type_keys() {
  return {
      acting(number_type("communication_data_type",
                         "type in which gradients travel between ranks; they are added in fp32"),
             only_with_ranks,
             &ZeroSettings::communication),
      acting(number_type("data_types.grad_accum_dtype",
                         "type in which the gradients of micro-steps are added up"),
             {},
             &ZeroSettings::grad_accum),
  };
}

Declarations weight_keys() {
  return {
      acting(in_block("allgather_bucket_size",
                      whole(Range{.min = 2, .max = 1e15}, 500000000, "elements"),
                      "updated weights of one gather, at stages 1 and 2; an even number"),
             only_at_stages_1_and_2("stage 0 gathers no weights: every rank makes the whole update",
                                    "stage 3 gathers weights unit by unit, when they are used"),
             &ZeroSettings::allgather_bucket_elements),
      acting(or_auto(of_stage_3("prefetch_bucket_size",
                                elements(nullptr),
                                "weights gathered ahead of their use; without it, the next unit's; "
                                "0: none")),
             only_with_sharded_weights,
             &ZeroSettings::prefetch_elements),
      acting(or_auto(of_stage_3("param_persistence_threshold",
                                elements(0),
                                "units of at most so many trainable parameters stay gathered "
                                "between updates; 0 here, since whole units are gathered, not "
                                "single parameters")),
             only_with_sharded_weights,
             &ZeroSettings::persistence_elements),
      acting(or_auto(of_stage_3("max_live_parameters",
                                elements(1000000000),
                                "weights gathered at one time; the unit in use always is")),
             only_with_sharded_weights,
             &ZeroSettings::max_live_elements),
      acting(in_block("sub_group_size",
                      elements(1000000000),
                      "weights of one piece of the optimizer's work, within a unit; 0: a whole "
                      "unit's; changes no number"),
             {},
             &ZeroSettings::sub_group_elements),
  };
}

// Also under its older name, and in an Accelerate YAML.
Declaration gather_on_save() {
  Declaration key = or_auto(
      of_stage_3("gather_16bit_weights_on_model_save",
                 flag(nullptr),
                 "stage 3: the result is in the 16-bit type that computes; false: in fp32, "
                 "from the master weights, as zero_to_fp32 makes it of DeepSpeed's shards"));
  key.old_names = {"zero_optimization.stage3_gather_fp16_weights_on_model_save"};
  key.deepspeed.push_back(key.old_names.front());
  key.accelerate = {"deepspeed_config.zero3_save_16bit_model"};
  return acting(std::move(key), only_with_16_bit_shards, &ZeroSettings::gather_16bit_on_save);
}

}  // namespace

Declarations zero_keys() {
  return joined(
      {stage_keys(), gradient_keys(), number_type_keys(), weight_keys(), {gather_on_save()}});
}

}  // namespace zeroth::config
