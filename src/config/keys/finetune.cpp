#include "config/field.h"
#include "config/keys/keys.h"

// What is trained: LLaMA-Factory's names, and PEFT's where it has none.
namespace zeroth::config {
namespace {

using Condition = std::optional<std::string> (*)(const Values&);

template <typename T>
Field of(T FinetuneSettings::*member) {
  return field(&RunConfig::finetune, member);
}

std::optional<std::string> only_with_lora(const Values& values) {
  if (!values.is("finetuning_type", "lora")) {
    return "finetuning_type is " + shown(values["finetuning_type"]) + ": there is no adapter";
  }
  return std::nullopt;
}

std::optional<std::string> only_for_a_new_adapter(const Values& values) {
  if (values.given("adapter_name_or_path") && !values.is("create_new_adapter", true)) {
    return "the adapter that is given brings its own";
  }
  return only_with_lora(values);
}

std::optional<std::string> only_for_some_layers(const Values& values) {
  if (!values.given("layers_to_transform")) {
    return "layers_to_transform is not given: every layer is adapted";
  }
  return only_for_a_new_adapter(values);
}

std::optional<std::string> only_with_a_ratio(const Values& values) {
  if (!values.given("loraplus_lr_ratio")) {
    return "loraplus_lr_ratio is not given: all matrices learn at one rate";
  }
  return only_with_lora(values);
}

std::optional<std::string> only_with_an_adapter(const Values& values) {
  if (!values.given("adapter_name_or_path")) {
    return "no adapter is given: a new one starts anyway";
  }
  return only_with_lora(values);
}

std::optional<std::string> only_when_frozen(const Values& values) {
  if (!values.is("finetuning_type", "freeze")) {
    return "finetuning_type is not freeze";
  }
  return std::nullopt;
}

std::optional<RuleValue> twice_the_rank(const Values& values) {
  return RuleValue{2.0 * values["lora_rank"].get<double>(), "2 x lora_rank"};
}

// LLaMA-Factory's rule: rows that are new must be trained.
std::optional<RuleValue> ends_of_a_new_vocabulary(const Values& values) {
  const bool grows = !values["add_tokens"].empty() || !values["add_special_tokens"].empty() ||
                     values.is("resize_vocab", true);
  if (!grows || only_for_a_new_adapter(values)) {
    return std::nullopt;
  }
  return RuleValue{Json::array({"embed_tokens", "lm_head"}), "rows for added tokens must train"};
}

Declaration list_of(std::string name, std::string help, Condition condition, Field field) {
  return {.name = std::move(name),
          .type = ValueType::kList,
          .default_value = Json::array(),
          .help = std::move(help),
          .without_effect = condition,
          .field = std::move(field)};
}

Declaration block_of(std::string name, std::string help, Field field) {
  return {.name = std::move(name),
          .type = ValueType::kMap,
          .default_value = Json::object(),
          .help = std::move(help),
          .without_effect = only_for_a_new_adapter,
          .field = std::move(field)};
}

Declaration switch_of(std::string name, std::string help, Condition condition, Field field) {
  return {.name = std::move(name),
          .type = ValueType::kBoolean,
          .default_value = false,
          .help = std::move(help),
          .without_effect = condition,
          .field = std::move(field)};
}

Declaration called(std::vector<std::string> aliases, Declaration key) {
  key.aliases = std::move(aliases);
  return key;
}

Declarations size_keys() {
  return {
      {.name = "finetuning_type",
       .type = ValueType::kChoice,
       .choices = choices_of<FinetuningType>(),
       .refused_choices = {{"oft", "orthogonal adapters are not built; use lora"}},
       .default_value = "lora",
       .help = "train a LoRA adapter, all weights, or some of them (freeze)",
       .field = of(&FinetuneSettings::type)},
      {.name = "lora_rank",
       .aliases = {"lora_r"},
       .type = ValueType::kInteger,
       .range = {.min = 1, .max = 1e6},
       .default_value = 8,
       .help = "rank of the adapter's matrices",
       .without_effect = only_with_lora,
       .field = of(&FinetuneSettings::lora_rank)},
      {.name = "lora_alpha",
       .type = ValueType::kNumber,
       .range = kPositive,
       .help = "scale of the adapter: alpha / rank; default 2 x lora_rank",
       .without_effect = only_with_lora,
       .rule = twice_the_rank,
       .field = of(&FinetuneSettings::lora_alpha)},
      {.name = "lora_dropout",
       .type = ValueType::kNumber,
       .range = {.min = 0, .max = 1, .max_excluded = true},
       .default_value = 0.0,
       .help = "share of the adapter's inputs that is zeroed while training",
       .without_effect = only_with_lora,
       .field = of(&FinetuneSettings::lora_dropout)},
  };
}

Declarations place_keys() {
  Declaration targets =
      called({"lora_target_modules"},
             list_of("lora_target",
                     "which modules get an adapter: all (the linears of the blocks), names such as "
                     "q_proj,v_proj, or one regular expression for the whole name",
                     only_for_a_new_adapter,
                     of(&FinetuneSettings::lora_targets)));
  targets.default_value = Json::array({"all"});
  Declaration whole =
      called({"modules_to_save"},
             list_of("additional_target",
                     "modules that are trained in full beside the adapter, and saved with it; "
                     "embed_tokens and lm_head where tokens are added",
                     only_for_a_new_adapter,
                     of(&FinetuneSettings::modules_to_save)));
  whole.rule = ends_of_a_new_vocabulary;
  return {
      std::move(targets),
      list_of("exclude_modules",
              "names, or a regular expression, of modules that get none all the same",
              only_for_a_new_adapter,
              of(&FinetuneSettings::exclude_modules)),
      list_of("layers_to_transform",
              "numbers of the layers whose targets get an adapter; all of them if not given",
              only_for_a_new_adapter,
              of(&FinetuneSettings::layers_to_transform)),
      list_of("layers_pattern",
              "what a layer's number stands behind in a module's name, such as layers",
              only_for_some_layers,
              of(&FinetuneSettings::layers_pattern)),
      block_of("rank_pattern",
               "ranks of some modules: ends of their names, or regular expressions, with a rank",
               of(&FinetuneSettings::rank_pattern)),
      block_of("alpha_pattern", "the same of lora_alpha", of(&FinetuneSettings::alpha_pattern)),
      std::move(whole),
      called({"train_bias"},
             {.name = "bias",
              .type = ValueType::kChoice,
              .choices = choices_of<BiasTraining>(),
              .default_value = "none",
              .help = "biases of the model that are trained beside the adapter: all of them, or "
                      "those of adapted modules",
              .without_effect = only_for_a_new_adapter,
              .field = of(&FinetuneSettings::bias)}),
  };
}

Declarations kind_keys() {
  return {
      switch_of("use_rslora",
                "scale the adapter by alpha / sqrt(rank)",
                only_for_a_new_adapter,
                of(&FinetuneSettings::use_rslora)),
      switch_of("use_dora",
                "train the lengths of the weights' rows apart from their directions (DoRA)",
                only_for_a_new_adapter,
                of(&FinetuneSettings::use_dora)),
      {.name = "init_lora_weights",
       .type = ValueType::kChoice,
       .choices = choices_of<LoraStart>(),
       .synonyms = {{"true", "default"}},
       .refused_choices = {{"false",
                            "an adapter that starts at random changes the model: use default"},
                           {"pissa", "it changes the base: make the adapter with PEFT and give it"},
                           {"olora", "it changes the base: make the adapter with PEFT and give it"},
                           {"corda", "it changes the base: make the adapter with PEFT and give it"},
                           {"loftq", "it changes the base: make the adapter with PEFT and give it"},
                           {"eva", "make the adapter with PEFT and give it"},
                           {"orthogonal", "make the adapter with PEFT and give it"}},
       .default_value = "default",
       .help = "how A starts: uniform in 1 / sqrt(inputs), or normal with a deviation of 1 / rank",
       .without_effect = only_for_a_new_adapter,
       .field = of(&FinetuneSettings::init_lora_weights)},
      {.name = "loraplus_lr_ratio",
       .type = ValueType::kNumber,
       .range = kPositive,
       .help = "learning rate of B over that of A (LoRA+)",
       .without_effect = only_with_lora,
       .field = of(&FinetuneSettings::loraplus_lr_ratio)},
      {.name = "loraplus_lr_embedding",
       .type = ValueType::kNumber,
       .range = kNotNegative,
       .default_value = 1e-6,
       .help = "learning rate of B of an adapted embedding, with loraplus_lr_ratio",
       .without_effect = only_with_a_ratio,
       .field = of(&FinetuneSettings::loraplus_lr_embedding)},
      switch_of("create_new_adapter",
                "merge the adapters that are given into the model, and start a new one",
                only_with_an_adapter,
                of(&FinetuneSettings::create_new_adapter)),
  };
}

Declarations freeze_keys() {
  Declaration modules =
      called({"name_module_trainable"},
             list_of("freeze_trainable_modules",
                     "modules of those blocks to train: all, or names such as mlp,self_attn",
                     only_when_frozen,
                     of(&FinetuneSettings::freeze_trainable_modules)));
  modules.default_value = Json::array({"all"});
  return {
      {.name = "freeze_trainable_layers",
       .aliases = {"num_layer_trainable"},
       .type = ValueType::kInteger,
       .default_value = 2,
       .unit = "blocks",
       .help = "blocks to train: the last ones, or the first if negative",
       .without_effect = only_when_frozen,
       .field = of(&FinetuneSettings::freeze_trainable_layers)},
      std::move(modules),
      list_of("freeze_extra_modules",
              "modules outside the blocks to train, such as embed_tokens,norm",
              only_when_frozen,
              of(&FinetuneSettings::freeze_extra_modules)),
  };
}

}  // namespace

Declarations finetune_keys() {
  Declarations keys;
  for (const Declarations& part : {size_keys(), place_keys(), kind_keys(), freeze_keys()}) {
    keys.insert(keys.end(), part.begin(), part.end());
  }
  for (Declaration& key : keys) {
    key.section = "Fine-tuning";
    key.commands = kUpdates;
    key.on_resume = key.name == "lora_dropout" ? OnResume::kListed : OnResume::kNeedsAllow;
  }
  return keys;
}

}  // namespace zeroth::config
