#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "shapes/lora.h"

// The names of the modules that LoRA can adapt, for settings and for messages.
namespace zeroth::shapes {

using Counts = std::vector<std::pair<std::string, std::int64_t>>;  // in the order of appearance

[[nodiscard]] std::string short_name(const std::string& module);
void count(const std::string& name, Counts& counts);

// All that LoRA can adapt in a unit, in the order of the unit.
[[nodiscard]] std::vector<LinearShape> adaptable(const UnitShape& unit);

// Short names with how many modules bear them.
[[nodiscard]] Counts available(const ModelShape& model, bool with_ends);
[[nodiscard]] std::string listed(const Counts& counts);  // "q_proj (2 modules), ..."

// The targets one by one, "all" spelt out, repetitions left out.
[[nodiscard]] std::vector<std::string> spelt_out(const ModelShape& model,
                                                 const LoraSettings& settings);

// kConfig: targets that match nothing, with what there is.
[[noreturn]] void fail_unmatched(const ModelShape& model,
                                 const std::vector<std::string>& unmatched);

}  // namespace zeroth::shapes
