#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/keys/keys.h"

// Shorter ways to write declarations that have no field of their own.
namespace zeroth::config {

// Known, not built yet; refused by `train` unless its value is one of `off_values`.
[[nodiscard]] inline Declaration planned(std::string name,
                                         ValueType type,
                                         std::vector<Json> off_values,
                                         std::string reason) {
  return {.name = std::move(name),
          .type = type,
          .commands = kRunFamily,
          .status = Status::kPlanned,
          .off_values = std::move(off_values),
          .reason = std::move(reason)};
}

// Known, and no result depends on it.
[[nodiscard]] inline Declaration harmless(std::string name, ValueType type, std::string reason) {
  return {.name = std::move(name),
          .type = type,
          .commands = kRunFamily,
          .status = Status::kHarmless,
          .reason = std::move(reason)};
}

// Known, and not what Zeroth does; refused unless its value is one of `off_values`.
[[nodiscard]] inline Declaration refused(std::string name,
                                         ValueType type,
                                         std::vector<Json> off_values,
                                         std::string reason) {
  Declaration key = planned(std::move(name), type, std::move(off_values), std::move(reason));
  key.status = Status::kRefused;
  return key;
}

// The same key, standing in a ds_config.json under its own name.
[[nodiscard]] inline Declaration in_deepspeed(Declaration key) {
  key.deepspeed = {key.name};
  return key;
}

// The same key, standing in an Accelerate YAML under its own name.
[[nodiscard]] inline Declaration in_accelerate(Declaration key) {
  key.accelerate = {key.name};
  return key;
}

}  // namespace zeroth::config
