// Values of single parameters, whole, under every stage.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "library/engine_impl.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <c10/core/GradMode.h>

namespace zeroth {

std::vector<std::string> Engine::Impl::parameter_names() const {
  std::vector<std::string> names;
  for (const auto& unit : units_) {
    for (const models::Parameter& parameter : unit->parameters()) {
      names.push_back(parameter.name);
    }
  }
  return names;
}

models::Parameter& Engine::Impl::find(const std::string& name) {
  const auto alias = aliases_.find(name);
  const std::string& wanted = alias == aliases_.end() ? name : alias->second;
  for (const auto& unit : units_) {
    for (models::Parameter& parameter : unit->parameters()) {
      if (parameter.name == wanted) {
        return parameter;
      }
    }
  }
  const std::vector<std::string> near = nearest(name, parameter_names());
  throw Error(
      ErrorKind::kUsage,
      fmt::format("no parameter is called {}{}\n  parameter_names() lists them.",
                  name,
                  near.empty() ? "" : fmt::format(" (did you mean {}?)", fmt::join(near, " or "))));
}

models::Parameter& Engine::Impl::find_trainable(const std::string& name) {
  models::Parameter& parameter = find(name);
  if (!parameter.trainable) {
    throw Error(ErrorKind::kUsage,
                fmt::format("parameter {} is frozen: it has no gradient and no moments", name));
  }
  return parameter;
}

namespace {

void require_shape(const models::Parameter& parameter, const at::Tensor& value) {
  if (!value.defined() || value.sizes().vec() != parameter.sizes()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("a value of shape [{}] for parameter {}, which has [{}]",
                            value.defined() ? fmt::format("{}", fmt::join(value.sizes(), ", "))
                                            : "undefined",
                            parameter.name,
                            fmt::join(parameter.sizes(), ", ")));
  }
}

}  // namespace

void Engine::Impl::require_gradients() const {
  if (phase_ != Phase::kBackwarded) {
    throw Error(ErrorKind::kUsage,
                "there are no gradients now\n  Read and write them between backward() and step().");
  }
}

void Engine::Impl::require_moment(int index) const {
  if (index < 0 || index >= engine_->num_moments()) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("moment {} of an optimizer that has {}", index, engine_->num_moments()));
  }
}

at::Tensor Engine::Impl::parameter(const std::string& name) {
  return guarded([&] {
    const models::Parameter& parameter = find(name);
    return parameter.trainable ? engine_->parameter_value(parameter.name)
                               : parameter.value.detach().to(at::kFloat, false, /*copy=*/true);
  });
}

void Engine::Impl::set_parameter(const std::string& name, const at::Tensor& value) {
  guarded([&] {
    const models::Parameter& parameter = find(name);
    require_shape(parameter, value);
    if (parameter.trainable) {
      engine_->set_parameter_value(parameter.name, value);
      engine_->settle();
    } else {
      const c10::NoGradGuard no_grad;
      parameter.value.copy_(value);
    }
  });
}

at::Tensor Engine::Impl::gradient(const std::string& name) {
  return guarded([&] {
    require_gradients();
    return engine_->gradient_value(find_trainable(name).name);
  });
}

void Engine::Impl::set_gradient(const std::string& name, const at::Tensor& value) {
  guarded([&] {
    require_gradients();
    const models::Parameter& parameter = find_trainable(name);
    require_shape(parameter, value);
    engine_->set_gradient_value(parameter.name, value);
  });
}

at::Tensor Engine::Impl::moment(const std::string& name, int index) {
  return guarded([&] {
    require_moment(index);
    return engine_->moment_value(find_trainable(name).name, index);
  });
}

void Engine::Impl::set_moment(const std::string& name, int index, const at::Tensor& value) {
  guarded([&] {
    require_moment(index);
    const models::Parameter& parameter = find_trainable(name);
    require_shape(parameter, value);
    engine_->set_moment_value(parameter.name, index, value);
  });
}

}  // namespace zeroth
