#include "base/in_flight.h"

#include <utility>

namespace zeroth {
namespace {

void finish_quietly(std::unique_ptr<InFlight::Work> work) noexcept {
  if (work == nullptr) {
    return;
  }
  try {
    work->wait();
  } catch (...) {  // NOLINT(bugprone-empty-catch): whoever lets go of it no longer wants to know
  }
}

}  // namespace

InFlight& InFlight::operator=(InFlight&& other) {
  finish_quietly(std::exchange(work_, std::move(other.work_)));
  return *this;
}

InFlight::~InFlight() {
  finish_quietly(std::move(work_));
}

void InFlight::wait() {
  const std::unique_ptr<Work> work = std::move(work_);
  if (work != nullptr) {
    work->wait();
  }
}

}  // namespace zeroth
