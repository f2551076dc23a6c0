#pragma once

#include "formats/adapter.h"
#include "formats/safetensors.h"
#include "shapes/lora.h"

// Proofs, before any long work, that files hold what a model or adapter needs and nothing it would
// drop. Faults are reported together, as one Error of kModel that lists the first of them and
// counts the rest.
namespace zeroth::shapes {

// Every parameter is there with its shape and a type that weights may have, and every tensor is
// used. Two leftovers are passed over as Transformers does: rotary_emb.inv_freq, and lm_head.weight
// of a tied model.
void check_weights(const ModelShape& model, const formats::ModelWeights& weights);

// Every tensor of the adapter that its settings ask for is there with the shape of its rank, and
// there is no other tensor: PEFT itself only warns of these and then computes without the adapter.
void check_adapter(const ModelShape& model,
                   const formats::AdapterConfig& config,
                   const formats::TensorFile& file);

}  // namespace zeroth::shapes
