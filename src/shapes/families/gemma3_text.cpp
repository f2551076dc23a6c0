#include "shapes/decoder_shape.h"
#include "shapes/families.h"
#include "shapes/families/gemma_fields.h"

namespace zeroth::shapes {
namespace {

using formats::JsonFields;
using formats::RopeConfig;

// Of all layers, and of those that slide.
struct Ropes {
  RopeConfig full, window;
};

RopeConfig read_part(JsonFields& parameters, const char* name, const formats::RopeDefaults& rope) {
  const Json& part = parameters.value(name);
  if (!part.is_object()) {
    parameters.fault(name, "must be an object");
    return {};
  }
  JsonFields block(part, parameters.source(), std::string("rope_parameters.") + name + ".");
  const RopeConfig read = read_rope_block(block, rope);
  parameters.take_faults_of(block);
  return read;
}

// Transformers 5 holds a block for each type of layer.
Ropes read_by_type(JsonFields& fields, std::int64_t positions) {
  JsonFields parameters(fields.value("rope_parameters"), fields.source(), "rope_parameters.");
  const Ropes ropes{
      .full = read_part(
          parameters, "full_attention", {.theta = 1e6, .max_position_embeddings = positions}),
      .window = read_part(
          parameters, "sliding_attention", {.theta = 1e4, .max_position_embeddings = positions})};
  for (const std::string& name : parameters.unread()) {
    parameters.unsupported(name, "this rope setting is not built");
  }
  for (const char* name : {"rope_theta", "rope_scaling", "rope_local_base_freq"}) {
    if (fields.has(name)) {
      fields.fault(name, "stands beside rope_parameters of each type of layer; keep one");
    }
  }
  fields.take_faults_of(parameters);
  return ropes;
}

Ropes read_ropes(JsonFields& fields, std::int64_t positions) {
  const Json& parameters = fields.value("rope_parameters");
  if (parameters.is_object() &&
      (parameters.contains("full_attention") || parameters.contains("sliding_attention"))) {
    return read_by_type(fields, positions);
  }
  return {.full = read_rope(fields, {.theta = 1e6, .max_position_embeddings = positions}),
          .window = {.theta = fields.positive_or("rope_local_base_freq", 1e4)}};
}

// The pattern's name has changed with the releases.
std::int64_t read_pattern(JsonFields& fields) {
  constexpr JsonFields::Range kLayers{1, 4096};
  const std::int64_t now = fields.integer_or("_sliding_window_pattern", kLayers, 6);
  return fields.integer_or("sliding_window_pattern", kLayers, now);
}

void read(JsonFields& fields, formats::ModelConfig& config) {
  read_gemma(fields, {.max_position_embeddings = 131072}, config);
  read_gemma2_features(fields, 0, config);
  // The field is there, but Transformers' Gemma 3 does not cap its scores: its numbers for a model
  // with this field set are those without (variant softcaps_5_3 of the reference data).
  (void)positive_or_none(fields, "attn_logit_softcapping", 0);
  config.qk_norm = true;
  const Ropes ropes = read_ropes(fields, config.max_position_embeddings);
  const std::int64_t pattern = read_pattern(fields);
  read_layer_kinds(fields,
                   {.window = read_window(fields, 4096),
                    .slides = [pattern](std::int64_t layer) { return (layer + 1) % pattern != 0; },
                    .full_rope = ropes.full,
                    .window_rope = ropes.window},
                   config);
}

}  // namespace

// Gemma 3 (Kamath et al., 2025), text: five layers slide, with a rope of their own, then one does
// not.
Family gemma3_text() {
  return {"gemma3_text", "Gemma3ForCausalLM", read, decoder_shape};
}

}  // namespace zeroth::shapes
