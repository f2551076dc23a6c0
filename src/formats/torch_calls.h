#pragma once

#include <optional>
#include <string>

#include "formats/pickle_values.h"

// The few names that a state dictionary of PyTorch may mention, and what calling them gives.
namespace zeroth::formats::pickle {

[[nodiscard]] bool is_known_name(const std::string& name);  // "torch._utils._rebuild_tensor_v2"

// What `function` gives for `arguments` (a tuple): into `result`, a value of the caller's heap.
// False where the arguments are not what PyTorch writes.
[[nodiscard]] bool call(const Value& function, const Value& arguments, Value& result);

// A storage from the persistent id ('storage', type, key, location, elements); false where it is
// none.
[[nodiscard]] bool load_storage(const Value& id, Value& result);

}  // namespace zeroth::formats::pickle
