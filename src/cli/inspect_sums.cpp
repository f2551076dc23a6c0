#include "cli/inspect_sums.h"

namespace zeroth::cli {

Sums sums_of(const Inspected& found) {
  Sums sums;
  for (const auto& [name, tensor] : found.tensors) {
    sums.elements += tensor.elements();
    sums.bytes += static_cast<std::int64_t>(tensor.view->bytes.size());
    sums.elements_by_type[std::string(formats::dtype_name(tensor.view->dtype))] +=
        tensor.elements();
  }
  return sums;
}

std::vector<StateKind> state_kinds(const checkpoint::Manifest& manifest) {
  std::map<std::string, StateKind> by_name;
  for (const checkpoint::StateEntry& state : manifest.states) {
    StateKind& kind = by_name[state.what];
    kind.what = state.what;
    ++kind.tensors;
    kind.elements += state.range.size();
  }
  std::vector<StateKind> kinds;
  for (const auto& [name, kind] : by_name) {
    kinds.push_back(kind);
  }
  return kinds;
}

}  // namespace zeroth::cli
