#pragma once

#include "config/run_config.h"
#include "shapes/freeze.h"
#include "shapes/lora.h"

// What a run's settings say of the parts that train.
namespace zeroth::plan {

// Of a new adapter. A list of names in which some character stands that no name has is one regular
// expression; its commas are its own.
[[nodiscard]] shapes::LoraSettings lora_settings(const config::RunConfig& config);

[[nodiscard]] shapes::FreezeSettings freeze_settings(const config::FinetuneSettings& asked);

}  // namespace zeroth::plan
