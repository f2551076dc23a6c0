#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace zeroth::cli {

// A plan for people. `device_source` says where the size of a device comes from; `notes` are
// further lines.
[[nodiscard]] std::string plan_page(const plan::Plan& plan,
                                    const std::string& device_source,
                                    const std::vector<std::string>& notes);

}  // namespace zeroth::cli
