#include "models/logits_by_unit.h"

#include <set>

#include <ATen/core/grad_mode.h>

namespace zeroth::models {
namespace {

// Parameters that a later unit reads as well stay until the end.
std::set<const Parameter*> lent_parameters(const UnitList& units) {
  std::set<const Parameter*> lent;
  for (const auto& unit : units) {
    lent.insert(unit->borrowed().begin(), unit->borrowed().end());
  }
  return lent;
}

void bring(Unit& unit) {
  for (Parameter& parameter : unit.parameters()) {
    if (parameter.stored.defined()) {
      parameter.value = parameter.stored.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
    }
  }
}

void release(Unit& unit, const std::set<const Parameter*>& lent) {
  for (Parameter& parameter : unit.parameters()) {
    if (parameter.stored.defined() && !lent.contains(&parameter)) {
      parameter.value.reset();
    }
  }
}

}  // namespace

at::Tensor logits_by_unit(Model& model, const at::Tensor& ids) {
  const at::NoGradGuard no_grad;
  const TokenBatch batch{
      .ids_BT = ids, .labels_BT = {}, .rows = {}, .left_padding = {}, .inputs = {}};
  const ForwardContext context{.batch = batch};
  const std::set<const Parameter*> lent = lent_parameters(model.units);
  at::Tensor hidden;
  for (const auto& unit : model.units) {
    bring(*unit);
    hidden = unit->forward(context, hidden);
    release(*unit, lent);
  }
  return hidden;
}

}  // namespace zeroth::models
