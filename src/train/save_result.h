#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "formats/adapter.h"
#include "models/model.h"

// What a run leaves for other tools: names and formats of PEFT and Transformers, bytes that depend
// on the weights alone. Each returns the files it wrote. With an engine they are collective: rank 0
// writes, the others return nothing. Values are gathered in file order, one at a time, so that no
// rank ever holds the whole; if rank 0 cannot write, the others wait until its communicator is
// aborted.
namespace zeroth::train {

// adapter_config.json and adapter_model.safetensors (fp32), with all that PEFT keeps in it and the
// biases that were trained, which PEFT itself leaves out with bias "lora_only".
std::vector<std::filesystem::path> save_adapter(const std::filesystem::path& folder,
                                                const models::Model& model,
                                                const engine::Engine& engine,
                                                const formats::AdapterConfig& config);

// model*.safetensors in the type that the engine computes in, and config.json.
std::vector<std::filesystem::path> save_model(const std::filesystem::path& folder,
                                              const models::Model& model,
                                              const engine::Engine& engine,
                                              at::ScalarType dtype);

// A model without an engine (init-model).
std::vector<std::filesystem::path> save_model(const std::filesystem::path& folder,
                                              const models::Model& model,
                                              at::ScalarType dtype);

}  // namespace zeroth::train
