#include "zeroth/engine.h"

#include <utility>
#include <variant>

#include "base/error.h"
#include "config/library_settings.h"
#include "config/report.h"
#include "library/engine_impl.h"
#include "library/runtime_state.h"

namespace zeroth {
namespace {

config::RunConfig resolved(const Runtime& runtime, const Config& config) {
  config::LibrarySources sources{.files = config.files(), .texts = config.texts(), .values = {}};
  for (const Config::Setting& setting : config.settings()) {
    sources.values.push_back(
        {setting.key, std::visit([](const auto& value) { return Json(value); }, setting.value)});
  }
  return config::config_or_error(config::resolve_library(sources, RuntimeAccess::place(runtime)));
}

}  // namespace

Engine initialize(const Runtime& runtime,
                  Model model,
                  const Config& config,
                  const std::vector<ParameterGroup>& groups) {
  config::RunConfig in_force;
  try {
    in_force = resolved(runtime, config);
  } catch (const Error& error) {
    RuntimeAccess::comm(runtime)->abort(error.what());
    throw;
  }
  return Engine(
      std::make_unique<Engine::Impl>(runtime, std::move(model), std::move(in_force), groups));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
}

Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

StepLoss Engine::forward(const Batch& batch) {
  return impl_->forward(batch);
}

void Engine::backward(const StepLoss& loss) {
  impl_->backward(loss);
}

StepReport Engine::step() {
  return impl_->step();
}

StepReport Engine::train_batch(std::span<const Batch> micro_batches) {
  return impl_->train_batch(micro_batches);
}

StepReport Engine::train_batch(const std::function<std::optional<Batch>()>& next) {
  std::vector<Batch> window;
  while (static_cast<std::int64_t>(window.size()) < impl_->config().batch.accumulation) {
    std::optional<Batch> batch = next();
    if (!batch) {
      break;
    }
    window.push_back(std::move(*batch));
  }
  if (window.empty()) {
    return {.step = num_updates()};
  }
  if (static_cast<std::int64_t>(window.size()) < impl_->config().batch.accumulation) {
    window.back().last_of_epoch = true;  // nothing follows
  }
  return impl_->train_batch(window);
}

void Engine::set_window(std::int64_t num_micro_batches) {
  impl_->set_window(num_micro_batches);
}

bool Engine::is_gradient_accumulation_boundary() const {
  return impl_->engine().is_last_micro_step();
}

std::int64_t Engine::micro_batch_rows() const {
  return impl_->config().batch.micro_batch_rows;
}

std::int64_t Engine::accumulation_steps() const {
  return impl_->config().batch.accumulation;
}

StepLoss Engine::evaluate(const Batch& batch) {
  return impl_->evaluate(batch);
}

at::Tensor Engine::infer(const Batch& batch) {
  return impl_->infer(batch);
}

StepLoss Engine::sum_over_ranks(const StepLoss& loss) const {
  return impl_->sum_over_ranks(loss);
}

std::optional<double> Engine::global_grad_norm() const {
  return impl_->grad_norm();
}

std::int64_t Engine::num_updates() const {
  return impl_->engine().num_updates();
}

double Engine::learning_rate() const {
  return impl_->engine().learning_rate();
}

double Engine::loss_scale() const {
  return impl_->engine().loss_scale();
}

at::ScalarType Engine::dtype() const {
  return impl_->dtype();
}

std::vector<std::string> Engine::parameter_names() const {
  return impl_->parameter_names();
}

at::Tensor Engine::parameter(const std::string& name) const {
  return impl_->parameter(name);
}

void Engine::set_parameter(const std::string& name, const at::Tensor& value) {
  impl_->set_parameter(name, value);
}

at::Tensor Engine::gradient(const std::string& name) const {
  return impl_->gradient(name);
}

void Engine::set_gradient(const std::string& name, const at::Tensor& value) {
  impl_->set_gradient(name, value);
}

at::Tensor Engine::moment(const std::string& name, int index) const {
  return impl_->moment(name, index);
}

void Engine::set_moment(const std::string& name, int index, const at::Tensor& value) {
  impl_->set_moment(name, index, value);
}

std::string Engine::config() const {
  return config::effective_config(impl_->config()).dump(2);
}

std::string Engine::start_table() const {
  return impl_->start_table();
}

}  // namespace zeroth
