#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"

// What each optimizer takes besides learning rate and weight decay, by DeepSpeed's words for it.
namespace zeroth::config {

// "Adam" of a ds_config.json: AdamW, unless adam_w_mode says otherwise.
[[nodiscard]] bool is_called_adam(const Values& values);

// The optimizer in force, which may be one that is not built: as the table shows it.
[[nodiscard]] std::vector<std::string_view> parameters_of_optimizer(const Values& values);

// "optim is sgd (command line)", unless the optimizer takes the parameter.
[[nodiscard]] std::optional<std::string> unless_optimizer_takes(const Values& values,
                                                                std::string_view parameter);

// The same as a condition of a key.
[[nodiscard]] inline auto only_if_optimizer_takes(std::string_view parameter) {
  return [parameter](const Values& values) { return unless_optimizer_takes(values, parameter); };
}

}  // namespace zeroth::config
