#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "shapes/model_shape.h"

namespace zeroth::shapes {

// LLaMA-Factory's freeze-tuning: some blocks train, or some of their modules, and modules outside
// the blocks.
struct FreezeSettings {
  std::int64_t layers = 2;  // the last ones; the first if negative
  std::vector<std::string> modules{
      "all"};                        // of a block: "mlp", "self_attn", "input_layernorm", ...
  std::vector<std::string> extra{};  // outside: "embed_tokens", "norm", "lm_head"
};

// Names of the parameters that train. As there, a name of `extra` means every parameter whose name
// holds it: "norm" trains the norms of all blocks as well. kConfig for a name that there is not,
// listing those that there are, and where nothing trains.
[[nodiscard]] std::set<std::string> freeze_trained(const ModelShape& model,
                                                   const FreezeSettings& settings);

}  // namespace zeroth::shapes
