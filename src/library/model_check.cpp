#include "library/model_check.h"

#include <set>
#include <utility>

#include "base/error.h"
#include <fmt/format.h>

namespace zeroth::library {
namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::kModel, message);
}

void check_tensor(const Parameter& parameter) {
  const at::Tensor& value = parameter.value;
  if (!value.defined()) {
    fail(fmt::format("parameter {} is an undefined tensor", parameter.name));
  }
  if (!value.device().is_cpu() || value.layout() != at::kStrided) {
    fail(fmt::format(
        "parameter {} is not a dense tensor on the CPU: it is {} on {}\n  Move the model there "
        "before initialize().",
        parameter.name,
        value.layout() == at::kStrided ? "dense" : "sparse",
        value.device().str()));
  }
  if (!value.is_leaf()) {
    fail(fmt::format("parameter {} was computed from other tensors\n  detach() it first.",
                     parameter.name));
  }
  const at::ScalarType type = value.scalar_type();
  const bool trains_in = type == at::kFloat || type == at::kBFloat16 || type == at::kHalf;
  if (parameter.trainable && !trains_in) {
    fail(
        fmt::format("parameter {} is of type {}, and training computes in fp32, bf16 or fp16\n  "
                    "Convert the model, e.g. module->to(torch::kFloat), or freeze it.",
                    parameter.name,
                    c10::toString(type)));
  }
}

// Across all units.
class Places {
 public:
  void add(const std::string& unit, const Parameter& parameter) {
    const auto [held, new_tensor] =
        of_tensor_.emplace(parameter.value.unsafeGetTensorImpl(), Place{unit, parameter.name});
    if (!new_tensor) {
      fail(fmt::format(
          "parameter {} is in two units, {} and {}{}\n  A parameter belongs to one "
          "unit: make one unit of both, or list it in Unit::borrows of the second.",
          held->second.name,
          held->second.unit,
          unit,
          held->second.name == parameter.name ? ""
                                              : fmt::format(" (there as {})", parameter.name)));
    }
    const auto [named, new_name] = unit_of_name_.emplace(parameter.name, unit);
    if (!new_name) {
      fail(
          fmt::format("two parameters are called {}, in units {} and {}\n  Each needs a name of "
                      "its own.",
                      parameter.name,
                      named->second,
                      unit));
    }
  }

  void check_borrowed(const Unit& unit) const {
    for (const std::string& name : unit.borrows) {
      if (!unit_of_name_.contains(name)) {
        fail(fmt::format("unit {} borrows {}, which no unit has", unit.name, name));
      }
    }
  }

 private:
  struct Place {
    std::string unit;
    std::string name;
  };

  std::map<const void*, Place> of_tensor_;
  std::map<std::string, std::string> unit_of_name_;
};

void drop_repeated(Unit& unit, Aliases& aliases) {
  std::map<const void*, std::string> first;
  std::vector<Parameter> once;
  for (Parameter& parameter : unit.parameters) {
    const auto [there, added] =
        first.emplace(parameter.value.unsafeGetTensorImpl(), parameter.name);
    if (added) {
      once.push_back(std::move(parameter));
    } else {
      aliases.emplace(parameter.name, there->second);
    }
  }
  unit.parameters = std::move(once);
}

}  // namespace

Aliases checked(Model& model) {
  if (model.units.empty()) {
    fail("a model without units\n  It needs at least one, which computes what the loss takes.");
  }
  if (!model.loss) {
    fail("a model without a loss\n  Model::loss makes a Loss of the last unit's output.");
  }
  Aliases aliases;
  Places places;
  std::set<std::string> names;
  for (Unit& unit : model.units) {
    const bool loss_reads_it = &unit == &model.units.back();
    if (!unit.forward && !unit.parameters.empty() && !loss_reads_it) {
      fail(fmt::format("unit {} has parameters and no forward, so nothing reads them", unit.name));
    }
    if (unit.name.empty() || !names.insert(unit.name).second) {
      fail(unit.name.empty() ? "a unit without a name"
                             : fmt::format("two units are called {}", unit.name));
    }
    for (const Parameter& parameter : unit.parameters) {
      check_tensor(parameter);
    }
    drop_repeated(unit, aliases);
    for (const Parameter& parameter : unit.parameters) {
      places.add(unit.name, parameter);
    }
  }
  for (const Unit& unit : model.units) {
    places.check_borrowed(unit);
  }
  return aliases;
}

}  // namespace zeroth::library
