// Values of single parameters, whole, whatever the stage keeps where.
#include "base/check.h"
#include "engine/engine.h"
#include <fmt/format.h>

#include <ATen/ops/isfinite.h>

namespace zeroth::engine {

at::Tensor Engine::Place::of(const at::Tensor& flat) const {
  const shard::Range part = range();
  return shaped(flat.narrow(0, part.begin, part.size())).clone();
}

at::Tensor Engine::Place::shaped(const at::Tensor& values) const {
  return values.view(unit->trainable()[leaf]->sizes());
}

Engine::Place Engine::find(const std::string& name) const {
  for (zero::UnitState& unit : walk_->units()) {
    for (std::size_t leaf = 0; leaf < unit.trainable().size(); ++leaf) {
      if (unit.trainable()[leaf]->name == name) {
        return {.unit = &unit, .leaf = leaf};
      }
    }
  }
  ZEROTH_CHECK(false, "no trainable parameter is named {}", name);
  return {};
}

at::Tensor Engine::flat_value(const Place& place, const at::Tensor& value) const {
  const std::vector<std::int64_t> sizes = place.unit->trainable()[place.leaf]->sizes();
  ZEROTH_CHECK(value.sizes() == c10::IntArrayRef(sizes),
               "a value of {} numbers for parameter {} of {}",
               value.numel(),
               place.unit->trainable()[place.leaf]->name,
               place.range().size());
  return value.detach().to(at::kFloat).contiguous().view({-1});
}

at::Tensor Engine::parameter_value(const std::string& name) const {
  const Place place = find(name);
  return place.shaped(place.unit->gather_master(place.range()));
}

void Engine::set_parameter_value(const std::string& name, const at::Tensor& value) {
  const Place place = find(name);
  place.unit->overwrite_master(place.range(), flat_value(place, value));
}

// What gradients are stored as, for each unit of gradient per target token.
double Engine::stored_per_target() const {
  const auto weight = static_cast<double>(sum_over_ranks(window_loss_).weight);
  return loss_scale() * weight / options_.gradient_divisor;
}

at::Tensor Engine::gradient_value(const std::string& name) const {
  const Place place = find(name);
  const double stored = stored_per_target();
  return place.of(place.unit->gradients().gather()).div_(stored);
}

void Engine::set_gradient_value(const std::string& name, const at::Tensor& value) {
  const Place place = find(name);
  place.unit->gradients().overwrite(place.range(),
                                    flat_value(place, value).mul(stored_per_target()));
}

at::Tensor Engine::moment_value(const std::string& name, int index) const {
  const Place place = find(name);
  return place.shaped(place.unit->gather_moment(index, place.range()));
}

void Engine::set_moment_value(const std::string& name, int index, const at::Tensor& value) {
  const Place place = find(name);
  place.unit->overwrite_moment(index, place.range(), flat_value(place, value));
}

// On an overflow, which every rank has seen. An output of the forward comes first, since all that
// follows is made of it; then, in the order of backward, the first gradient.
std::string Engine::where_not_finite() {
  constexpr double kNowhere = 1e15;
  std::vector<double> mine{kNowhere, kNowhere, kNowhere};
  if (non_finite_output_) {
    mine[0] = static_cast<double>(*non_finite_output_);
  }
  const auto& units = walk_->units();
  for (std::size_t index = units.size(); index-- > 0;) {
    if (const auto leaf = units[index].first_non_finite_gradient()) {
      mine[1] = static_cast<double>(units.size() - 1 - index);
      mine[2] = static_cast<double>(*leaf);
      break;
    }
  }
  std::vector<double> first{kNowhere, kNowhere, kNowhere};
  const std::vector<double> all = comm().gather_values("the first number that is not finite", mine);
  for (std::size_t at = 0; at < all.size(); at += mine.size()) {
    first[0] = std::min(first[0], all[at]);
    if (std::pair(all[at + 1], all[at + 2]) < std::pair(first[1], first[2])) {
      first[1] = all[at + 1];
      first[2] = all[at + 2];
    }
  }
  if (first[0] != kNowhere) {
    const auto unit = static_cast<std::size_t>(first[0]);
    return fmt::format(
        "the output of unit {}{}", units[unit].unit().name(), bad_parameter_of(unit));
  }
  if (first[1] == kNowhere) {
    return "the sum of the gradients' squares";
  }
  const zero::UnitState& unit = units[units.size() - 1 - static_cast<std::size_t>(first[1])];
  return fmt::format("the gradient of {} (unit {})",
                     unit.trainable()[static_cast<std::size_t>(first[2])]->name,
                     unit.unit().name());
}

// ", whose parameter ... holds such a number itself", or nothing.
std::string Engine::bad_parameter_of(std::size_t unit) const {
  const zero::UnitState& state = walk_->units()[unit];
  const at::Tensor master =
      state.trains() ? state.gather_master({0, state.layout().padded_numel()}) : at::Tensor();
  std::size_t leaf = 0;
  for (const models::Parameter& parameter : state.unit().parameters()) {
    at::Tensor value = parameter.value;
    if (parameter.trainable) {
      const shard::Range range = state.layout().parameter(leaf++);
      value = master.narrow(0, range.begin, range.size());
    }
    if (!at::isfinite(value).all().item<bool>()) {
      return fmt::format(", whose parameter {} is not finite itself", parameter.name);
    }
  }
  return "";
}

}  // namespace zeroth::engine
