#pragma once

#include <cstdint>
#include <string>

#include "config/run_config.h"

#include "zeroth/model.h"

namespace zeroth::library {

// kUsage if neither the batch nor its first tensor tells.
[[nodiscard]] std::int64_t rows_of(const Batch& batch);

// Every micro-batch has the rows that the settings say, or an update would follow another number of
// rows than the one in force (docs/library.md, "The batch is the batch"). kUsage names both numbers
// and where they come from. An epoch's last may have fewer.
void require_rows(const Batch& batch, std::int64_t rank, const config::RunConfig& config);

// "gradient_accumulation_steps 8 (ds_config.json:3)".
[[nodiscard]] std::string with_source(const config::RunConfig& config, const std::string& key);

}  // namespace zeroth::library
