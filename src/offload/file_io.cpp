#include "offload/file_io.h"

#include <utility>

namespace zeroth::offload {
namespace {

void finish_quietly(const std::shared_ptr<Ticket::State>& state) noexcept {
  if (state == nullptr) {
    return;
  }
  try {
    state->wait();
  } catch (...) {  // NOLINT(bugprone-empty-catch): whoever lets go of it no longer wants the bytes
  }
}

}  // namespace

Ticket& Ticket::operator=(Ticket&& other) noexcept {
  finish_quietly(std::exchange(state_, std::move(other.state_)));
  return *this;
}

Ticket::~Ticket() {
  finish_quietly(state_);
}

void Ticket::wait() {
  const std::shared_ptr<State> state = std::move(state_);
  if (state != nullptr) {
    state->wait();
  }
}

}  // namespace zeroth::offload
