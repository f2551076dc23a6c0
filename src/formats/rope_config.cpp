#include "formats/rope_config.h"

#include <cmath>

#include <fmt/format.h>

namespace zeroth::formats {
namespace {

void read_llama3(JsonFields& block, RopeConfig& rope) {
  rope.type = RopeType::kLlama3;
  rope.factor = block.positive("factor");
  rope.low_freq_factor = block.positive("low_freq_factor");
  rope.high_freq_factor = block.positive("high_freq_factor");
  rope.original_max_position_embeddings = block.positive("original_max_position_embeddings");
  if (block.faultless() && rope.high_freq_factor <= rope.low_freq_factor) {
    block.fault("high_freq_factor", "must be greater than low_freq_factor");
  }
}

// The longest position decides: up to max_position_embeddings it is the plain rope.
void read_dynamic(JsonFields& block, const RopeDefaults& defaults, RopeConfig& rope) {
  rope.type = RopeType::kDynamic;
  rope.factor = block.positive("factor");
  const auto made_for = static_cast<double>(defaults.max_position_embeddings);
  rope.original_max_position_embeddings =
      block.positive_or("original_max_position_embeddings", made_for);
  if (rope.original_max_position_embeddings != made_for) {
    block.unsupported(
        "original_max_position_embeddings",
        fmt::format("with rope type \"dynamic\" only max_position_embeddings = {} is built",
                    defaults.max_position_embeddings));
  }
}

double yarn_scale(double factor, double weight) {
  return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

double yarn_attention_factor(JsonFields& block, double factor) {
  const double mscale = block.number_or("mscale", 0);
  const double mscale_all_dim = block.number_or("mscale_all_dim", 0);
  const double usual = mscale != 0 && mscale_all_dim != 0
                           ? yarn_scale(factor, mscale) / yarn_scale(factor, mscale_all_dim)
                           : yarn_scale(factor, 1);
  return block.positive_or("attention_factor", usual);
}

// Where factor is not max_position_embeddings / original_max_position_embeddings, releases of
// Transformers differ; factor counts, as in 5.
void read_yarn(JsonFields& block, const RopeDefaults& defaults, RopeConfig& rope) {
  rope.type = RopeType::kYarn;
  rope.factor = block.positive("factor");
  rope.original_max_position_embeddings = block.positive_or(
      "original_max_position_embeddings", static_cast<double>(defaults.max_position_embeddings));
  rope.attention_factor = yarn_attention_factor(block, rope.factor);
  rope.beta_fast = block.positive_or("beta_fast", rope.beta_fast);
  rope.beta_slow = block.positive_or("beta_slow", rope.beta_slow);
  rope.truncate = block.flag_or("truncate", true);
  if (rope.beta_fast < rope.beta_slow) {
    block.fault("beta_fast", fmt::format("must not be less than beta_slow = {}", rope.beta_slow));
  }
  if (rope.theta == 1) {
    block.fault("rope_theta", "yarn needs another base than 1");
  }
}

void read_type(JsonFields& block, const RopeDefaults& defaults, RopeConfig& rope) {
  const char* key = block.has("rope_type") ? "rope_type" : "type";  // "type": before 4.43
  const std::string type = block.text_or(key, "default");
  if (block.has("rope_type") && block.text_or("type", type) != type) {
    block.fault("type", fmt::format("stands beside rope_type = \"{}\"; keep one", type));
  }
  if (type == "linear") {
    rope.type = RopeType::kLinear;
    rope.factor = block.positive("factor");
  } else if (type == "dynamic") {
    read_dynamic(block, defaults, rope);
  } else if (type == "llama3") {
    read_llama3(block, rope);
  } else if (type == "yarn") {
    read_yarn(block, defaults, rope);
  } else if (type != "default") {
    block.unsupported(key,
                      "\"default\", \"linear\", \"dynamic\", \"llama3\" and \"yarn\" are built");
  }
}

}  // namespace

RopeConfig read_rope_block(JsonFields& block, const RopeDefaults& defaults) {
  RopeConfig rope;
  rope.theta = block.positive_or("rope_theta", defaults.theta);
  read_type(block, defaults, rope);
  if (block.number_or("partial_rotary_factor", 1) != 1) {
    block.unsupported("partial_rotary_factor", "only 1 is built");
  }
  for (const std::string& name : block.unread()) {
    block.unsupported(name, "this rope setting is not built");
  }
  return rope;
}

RopeConfig read_rope(JsonFields& fields, const RopeDefaults& defaults) {
  const bool is_v5 = fields.has("rope_parameters");
  const char* name = is_v5 ? "rope_parameters" : "rope_scaling";
  const Json& block = fields.value(name);
  if (is_v5 && fields.has("rope_scaling") && fields.value("rope_scaling") != block) {
    fields.fault("rope_scaling", "stands beside another rope_parameters; keep one");
  }
  const double theta = fields.positive_or("rope_theta", defaults.theta);
  RopeConfig rope{.theta = theta};
  if (block.is_null()) {
    return rope;
  }
  if (!block.is_object()) {
    fields.fault(name, "must be an object");
    return rope;
  }
  JsonFields inner(block, fields.source(), fmt::format("{}.", name));
  rope = read_rope_block(
      inner, {.theta = theta, .max_position_embeddings = defaults.max_position_embeddings});
  if (fields.has("rope_theta") && theta != rope.theta) {
    fields.fault("rope_theta", fmt::format("{}.rope_theta says {}; keep one", name, rope.theta));
  }
  fields.take_faults_of(inner);
  return rope;
}

}  // namespace zeroth::formats
