#include "engine/parameter_owners.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "shard/flat_layout.h"
#include <fmt/format.h>

namespace zeroth::engine {
namespace {

bool holds(const models::Unit& unit, const models::Parameter* parameter) {
  const auto& parameters = unit.parameters();
  return parameter >= parameters.data() && parameter < parameters.data() + parameters.size();
}

[[noreturn]] void refuse(const std::string& parameter, const std::string& a, const std::string& b) {
  throw Error(ErrorKind::kModel,
              fmt::format("parameter {} is in two units, {} and {}\n  Each parameter belongs to "
                          "one unit; a unit that reads another's lists it in borrowed().",
                          parameter,
                          a,
                          b));
}

}  // namespace

void refuse_shared_parameters(const models::UnitList& units) {
  std::map<std::string, std::string> unit_of_name;
  std::map<const void*, std::string> unit_of_tensor;
  for (const auto& unit : units) {
    for (const models::Parameter& parameter : unit->parameters()) {
      const auto [named, new_name] = unit_of_name.emplace(parameter.name, unit->name());
      if (!new_name) {
        refuse(parameter.name, named->second, unit->name());
      }
      if (parameter.trainable && parameter.value.defined()) {
        const auto [held, new_tensor] =
            unit_of_tensor.emplace(parameter.value.unsafeGetTensorImpl(), unit->name());
        if (!new_tensor) {
          refuse(parameter.name, held->second, unit->name());
        }
      }
    }
  }
}

std::vector<std::vector<std::size_t>> lenders_of(const models::UnitList& units) {
  std::vector<std::vector<std::size_t>> lenders;
  for (const auto& unit : units) {
    std::set<std::size_t> of_unit;
    for (const models::Parameter* parameter : unit->borrowed()) {
      for (std::size_t owner = 0; owner < units.size(); ++owner) {
        if (holds(*units[owner], parameter)) {
          of_unit.insert(owner);
        }
      }
    }
    lenders.emplace_back(of_unit.begin(), of_unit.end());
  }
  return lenders;
}

std::int64_t num_lenders(const std::vector<std::vector<std::size_t>>& lenders) {
  std::set<std::size_t> all;
  for (const auto& of_unit : lenders) {
    all.insert(of_unit.begin(), of_unit.end());
  }
  return static_cast<std::int64_t>(all.size());
}

std::vector<std::int64_t> padded_numels(const models::UnitList& units, std::int64_t num_shards) {
  std::vector<std::int64_t> padded;
  for (const auto& unit : units) {
    std::vector<std::int64_t> numels;
    for (const models::Parameter& parameter : unit->parameters()) {
      numels.push_back(parameter.trainable ? parameter.numel() : 0);
    }
    padded.push_back(shard::FlatLayout(numels, num_shards).padded_numel());
  }
  return padded;
}

}  // namespace zeroth::engine
