// The optimizer: Transformers' options, and DeepSpeed's optimizer block as far as it acts.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "config/field.h"
#include "config/keys/forms.h"
#include "config/keys/optimizers.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

constexpr auto kSection = "Optimizer";
constexpr Range kBeta{.min = 0, .max = 1, .max_excluded = true};

using Words = std::map<std::string, std::string>;

std::string lower(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return word;
}

// Of `optim`, in lower case. DeepSpeed's types, Transformers' names and PyTorch's classes.
Words other_words() {
  return {{"adamw", "adamw_torch"},
          {"adam", "adamw_torch"},  // as in DeepSpeed: adam_w_mode is on unless switched off
          {"adamw_torch_fused", "adamw_torch"},
          {"adamw_hf", "adamw_torch"},
          {"lion_32bit", "lion"}};
}

void refuse(Words& refused, std::initializer_list<const char*> names, const char* why) {
  for (const char* name : names) {
    refused.emplace(name, why);
  }
}

Words refused_optimizers() {
  Words refused{
      {"muon", "its orthogonalised update is not built; use AdamW"},
      {"adafactor", "its factored moments do not fit flat shards; use AdamW"},
      {"adamw_apex_fused", "Apex is not used; adamw_torch is fused already"},
      {"adamw_anyprecision", "moments are kept in fp32; use adamw_torch"},
      {"stable_adamw", "AdamW with clipped updates is not built; use adamw_torch"},
      {"paged_adamw_32bit",
       "paging is the work of offload_optimizer here; use adamw_torch with it"},
      {"paged_lion_32bit", "paging is the work of offload_optimizer here; use lion with it"}};
  refuse(refused,
         {"onebitadam", "zerooneadam", "onebitlamb"},
         "compressed communication changes the update, and no stage of ZeRO goes with it; use "
         "AdamW");
  refuse(refused,
         {"adamw_torch_xla", "adamw_torch_npu_fused"},
         "there is no such device here; use adamw_torch, which computes the same");
  refuse(refused,
         {"muadam", "muadamw", "musgd"},
         "muP needs widths that a model folder does not tell; use AdamW");
  refuse(refused,
         {"adamw_bnb_8bit",
          "adamw_8bit",
          "paged_adamw_8bit",
          "adamw_torch_4bit",
          "adamw_torch_8bit",
          "rmsprop_bnb_8bit",
          "ademamix_8bit",
          "paged_ademamix_8bit"},
         "moments are kept in 32 bits; use adamw_torch, sharded by --zero_stage");
  refuse(refused,
         {"lion_8bit", "paged_lion_8bit"},
         "moments are kept in 32 bits; use lion, sharded by --zero_stage");
  refuse(refused,
         {"ademamix",
          "paged_ademamix_32bit",
          "grokadamw",
          "lomo",
          "adalomo",
          "schedule_free_radam",
          "schedule_free_adamw",
          "schedule_free_sgd",
          "rmsprop",
          "rmsprop_bnb",
          "rmsprop_bnb_32bit",
          "adadelta",
          "adamax",
          "nadam",
          "radam",
          "asgd",
          "rprop",
          "sparseadam",
          "lbfgs"},
         "it is not built; adamw_torch, adam_l2, sgd, lion, adagrad and lamb are");
  refuse(refused,
         {"galore_adamw",
          "galore_adamw_8bit",
          "galore_adafactor",
          "galore_adamw_layerwise",
          "galore_adamw_8bit_layerwise",
          "galore_adafactor_layerwise",
          "apollo_adamw",
          "apollo_adamw_layerwise"},
         "gradients are not projected here; use adamw_torch, sharded by --zero_stage");
  return refused;
}

Declaration acting(Declaration key) {
  key.section = kSection;
  key.commands = kUpdates;
  return key;
}

// A key of optimizer.params that only some optimizers take.
template <typename Member>
Declaration parameter(const char* word, Declaration key, Member member) {
  const std::string path = std::string("optimizer.params.") + word;
  if (key.name.empty()) {
    key.name = path;
  }
  key.deepspeed = {path};
  key.without_effect = only_if_optimizer_takes(word);
  key.field = field(&RunConfig::optimizer, member);
  return acting(std::move(key));
}

Declaration beta(Declaration key, double OptimizerSettings::*member) {
  key.type = ValueType::kNumber;
  key.range = kBeta;
  key.may_be_auto = true;
  key.without_effect = only_if_optimizer_takes("betas");
  key.field = field(&RunConfig::optimizer, member);
  return acting(std::move(key));
}

std::optional<RuleValue> second_beta_of_lion(const Values& values) {
  return values.is("optim", "lion") ? std::optional(RuleValue{0.99, "Lion's default"})
                                    : std::nullopt;
}

std::optional<RuleValue> epsilon_of_adagrad(const Values& values) {
  return values.is("optim", "adagrad") ? std::optional(RuleValue{1e-10, "Adagrad's default"})
                                       : std::nullopt;
}

std::optional<RuleValue> coupled_in_adam_l2(const Values& values) {
  return values.is("optim", "adam_l2") ? std::optional(RuleValue{false, "optim is adam_l2"})
                                       : std::nullopt;
}

std::optional<std::string> only_in_adam(const Values& values) {
  if (is_called_adam(values) || values.is("optim", "adam_l2")) {
    return std::nullopt;
  }
  return values.is("optim", "adamw_torch")
             ? "AdamW decays weights apart from the gradient whatever it says, as in DeepSpeed; "
               "type Adam follows it"
             : unless_optimizer_takes(values, "adam_w_mode");
}

Declarations general_keys() {
  return {
      acting({.name = "optim",
              .aliases = {"optimizer"},
              .deepspeed = {"optimizer.type"},
              .type = ValueType::kChoice,
              .choices = choices_of<OptimizerKind>(),
              .synonyms = other_words(),
              .refused_choices = refused_optimizers(),
              .default_value = "adamw_torch",
              .help =
                  "AdamW (Adam, adamw and adamw_torch_fused mean the same), Adam with the decay "
                  "in the gradient, SGD, Lion (also lion_32bit), Adagrad or LAMB",
              .field = field(&RunConfig::optimizer, &OptimizerSettings::kind),
              .on_resume = OnResume::kNeedsAllow}),
      acting({.name = "learning_rate",
              .aliases = {"lr"},
              .deepspeed = {"optimizer.params.lr"},
              .type = ValueType::kNumber,
              .range = kNotNegative,
              .default_value = 5e-5,
              .may_be_auto = true,
              .help = "the highest learning rate of the schedule",
              .field = field(&RunConfig::optimizer, &OptimizerSettings::learning_rate)}),
      acting({.name = "weight_decay",
              .deepspeed = {"optimizer.params.weight_decay"},
              .type = ValueType::kNumber,
              .range = kNotNegative,
              .default_value = 0.0,
              .may_be_auto = true,
              .help = "weight decay: AdamW's and Lion's apart from the gradient, the others' "
                      "through it; norms and biases are not decayed",
              .field = field(&RunConfig::optimizer, &OptimizerSettings::weight_decay)}),
      acting({.name = "max_grad_norm",
              .deepspeed = {"gradient_clipping"},
              .accelerate = {"deepspeed_config.gradient_clipping"},
              .type = ValueType::kNumber,
              .range = kNotNegative,
              .default_value = 1.0,
              .may_be_auto = true,
              .help = "the global gradient norm is clipped to this; 0: no clipping",
              .field = field(&RunConfig::optimizer, &OptimizerSettings::max_grad_norm)}),
      acting({.name = "max_skipped_updates",
              .type = ValueType::kInteger,
              .range = {.min = 1, .max = 1e15},
              .default_value = 20,
              .unit = "attempts",
              .help = "so many skipped attempts at an update in a row, whose gradients were not "
                      "finite, end the run",
              .field = field(&RunConfig::optimizer, &OptimizerSettings::max_skipped)}),
  };
}

Declarations adam_keys() {
  return {
      beta({.name = "adam_beta1",
            .default_value = 0.9,
            .help = "decay of the first moment of AdamW, Adam, Lion and LAMB"},
           &OptimizerSettings::beta1),
      beta({.name = "adam_beta2",
            .default_value = 0.999,
            .help = "decay of the second moment of AdamW, Adam and LAMB; of Lion's one moment, "
                    "there 0.99 unless given",
            .rule = second_beta_of_lion},
           &OptimizerSettings::beta2),
      parameter("eps",
                {.name = "adam_epsilon",
                 .type = ValueType::kNumber,
                 .range = kPositive,
                 .default_value = 1e-8,
                 .may_be_auto = true,
                 .help = "guard against division by zero of AdamW, Adam, LAMB and Adagrad; of "
                         "Adagrad 1e-10 unless given",
                 .rule = epsilon_of_adagrad},
                &OptimizerSettings::epsilon),
      parameter("bias_correction",
                {.type = ValueType::kBoolean,
                 .default_value = true,
                 .help = "AdamW, Adam and LAMB make up for moments that start at zero"},
                &OptimizerSettings::bias_correction),
      // Used up in choosing between AdamW and Adam (optimizer_rules.h).
      acting({.name = "optimizer.params.adam_w_mode",
              .deepspeed = {"optimizer.params.adam_w_mode"},
              .type = ValueType::kBoolean,
              .default_value = true,
              .help = "type Adam means AdamW; false: Adam with the decay in the gradient, adam_l2",
              .without_effect = only_in_adam,
              .rule = coupled_in_adam_l2}),
  };
}

Declarations keys_of_the_others() {
  return {
      parameter("momentum",
                {.name = "sgd_momentum",
                 .aliases = {"momentum"},
                 .type = ValueType::kNumber,
                 .range = kBeta,
                 .default_value = 0.0,
                 .help = "SGD's momentum; --optim_args momentum=0.9 says the same"},
                &OptimizerSettings::momentum),
      parameter("dampening",
                {.type = ValueType::kNumber,
                 .range = kShare,
                 .default_value = 0.0,
                 .help = "SGD: share of a gradient that its momentum does not take"},
                &OptimizerSettings::dampening),
      parameter("nesterov",
                {.type = ValueType::kBoolean,
                 .default_value = false,
                 .help = "SGD looks a step ahead; needs momentum"},
                &OptimizerSettings::nesterov),
      parameter("lr_decay",
                {.type = ValueType::kNumber,
                 .range = kNotNegative,
                 .default_value = 0.0,
                 .help = "Adagrad: update t moves by the learning rate / (1 + (t - 1) x this)"},
                &OptimizerSettings::lr_decay),
      parameter("max_coeff",
                {.type = ValueType::kNumber,
                 .range = kPositive,
                 .default_value = 10.0,
                 .help = "upper bound of LAMB's factor for a parameter"},
                &OptimizerSettings::max_coeff),
      parameter("min_coeff",
                {.type = ValueType::kNumber,
                 .range = kPositive,
                 .default_value = 0.01,
                 .help = "lower bound of LAMB's factor for a parameter"},
                &OptimizerSettings::min_coeff),
  };
}

std::vector<Part> betas(const Json& value) {
  if (value == kAuto) {
    return {{"adam_beta1", kAuto}, {"adam_beta2", kAuto}};
  }
  if (value.size() != 2) {
    throw Error(ErrorKind::kConfig, "takes two numbers: adam_beta1 and adam_beta2");
  }
  return {{"adam_beta1", value[0]}, {"adam_beta2", value[1]}};
}

// The words of optim_args.
const Declaration* optimizer_argument(const std::string& word) {
  constexpr std::array kWords{
      "momentum", "dampening", "nesterov", "lr_decay", "max_coeff", "min_coeff", "bias_correction"};
  const bool known = std::find(kWords.begin(), kWords.end(), word) != kWords.end();
  return known ? find_declaration("optimizer.params." + word) : nullptr;
}

// "momentum=0.9,nesterov=true": each part is a setting of its own.
std::vector<Part> optimizer_arguments(const Json& value) {
  std::vector<Part> parts;
  for (const std::string& part : split(value.get<std::string>(), ',')) {
    const std::vector<std::string> sides = split(part, '=');
    const std::string word(trim(sides.front()));
    const Declaration* key = sides.size() == 2 ? optimizer_argument(word) : nullptr;
    if (key == nullptr) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("takes momentum, dampening, nesterov, lr_decay, max_coeff, min_coeff "
                              "or bias_correction with a value, such as momentum=0.9, not \"{}\"",
                              part));
    }
    const ParsedValue parsed = parse_value(*key, trim(sides.back()));
    if (!parsed.error.empty()) {
      throw Error(ErrorKind::kConfig, word + " " + parsed.error);
    }
    parts.push_back({key->name, parsed.value});
  }
  return parts;
}

Declarations keys_for_several() {
  return {
      acting({.name = "optimizer.params.betas",
              .deepspeed = {"optimizer.params.betas"},
              .type = ValueType::kNumbers,
              .range = kBeta,
              .may_be_auto = true,
              .help = "adam_beta1 and adam_beta2, as DeepSpeed writes them",
              .parts = betas}),
      acting({.name = "optim_args",
              .help = "further settings of the optimizer, such as momentum=0.9,nesterov=true",
              .parts = optimizer_arguments}),
  };
}

}  // namespace

bool is_called_adam(const Values& values) {
  const Json& written = values.setting("optim").written;
  return values.is("optim", "adamw_torch") && written.is_string() &&
         lower(written.get<std::string>()) == "adam";
}

std::vector<std::string_view> parameters_of_optimizer(const Values& values) {
  static const std::map<std::string, std::vector<std::string_view>> known{
      {"adamw_torch", {"betas", "eps", "bias_correction", "adam_w_mode"}},
      {"adam_l2", {"betas", "eps", "bias_correction", "adam_w_mode"}},
      {"sgd", {"momentum", "dampening", "nesterov"}},
      {"lion", {"betas"}},
      {"adagrad", {"eps", "lr_decay"}},
      {"lamb", {"betas", "eps", "bias_correction", "max_coeff", "min_coeff"}}};
  const auto found = known.find(shown(values["optim"]));
  return found == known.end() ? std::vector<std::string_view>{} : found->second;
}

std::optional<std::string> unless_optimizer_takes(const Values& values,
                                                  std::string_view parameter) {
  const auto taken = parameters_of_optimizer(values);
  if (std::find(taken.begin(), taken.end(), parameter) != taken.end()) {
    return std::nullopt;
  }
  return fmt::format("optim is {} ({}), which has no {}",
                     shown(values["optim"]),
                     values.source("optim").text,
                     parameter);
}

Declarations optimizer_keys() {
  return joined({general_keys(), adam_keys(), keys_of_the_others(), keys_for_several()});
}

}  // namespace zeroth::config
