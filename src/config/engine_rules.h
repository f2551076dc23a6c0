#pragma once

#include <string>
#include <vector>

#include "config/problems.h"
#include "config/schema.h"

// Rules between the settings of the engine: precision, loss scale, optimizer and ZeRO.
namespace zeroth::config {

// DeepSpeed's "Adam" is AdamW, or Adam with the decay in the gradient where adam_w_mode is false.
// Before rules give further values.
void choose_adam(Values& values);

void check_engine(const Values& values, Problems& problems);

// What a user should know about values that are in force, one line each.
[[nodiscard]] std::vector<std::string> engine_notices(const Values& values);

}  // namespace zeroth::config
