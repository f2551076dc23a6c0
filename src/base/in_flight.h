#pragma once

#include <memory>

namespace zeroth {

// Something that was started: a collective, a transfer to or from a file. Move-only. wait() returns
// when it is done and throws what went wrong; the destructor waits too, and swallows. The memory
// that it works on belongs to it until then.
class InFlight {
 public:
  class Work {
   public:
    virtual ~Work() = default;
    virtual void wait() = 0;
  };

  InFlight() = default;

  explicit InFlight(std::unique_ptr<Work> work) : work_(std::move(work)) {}

  InFlight(InFlight&&) noexcept = default;
  InFlight& operator=(InFlight&& other);
  ~InFlight();
  void wait();

 private:
  std::unique_ptr<Work> work_;
};

}  // namespace zeroth
