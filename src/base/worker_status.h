#pragma once

#include <string>
#include <string_view>

// What a worker leaves for the front that started it: what it is busy with, and why it failed. It
// lies in a file that exists in memory only and outlives the worker, however that ends.
namespace zeroth {

class WorkerStatus {
 public:
  // The front's side, closed on exec; kInternal if the system gives no memory.
  [[nodiscard]] static WorkerStatus create();
  // The worker's side: takes over the inherited descriptor.
  [[nodiscard]] static WorkerStatus open(int descriptor);

  WorkerStatus(WorkerStatus&& other) noexcept;
  WorkerStatus& operator=(WorkerStatus&&) = delete;
  ~WorkerStatus();

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  // Cheap enough for every step of the work; cut to a line.
  void set_activity(const std::string& activity) noexcept;
  [[nodiscard]] std::string activity() const;  // empty: none yet

  // False if the words could not be kept. A signal handler may call it.
  [[nodiscard]] bool set_failure(std::string_view message) const noexcept;
  [[nodiscard]] std::string failure() const;  // empty: the worker did not say

 private:
  explicit WorkerStatus(int descriptor);

  int descriptor_ = -1;
  char* activity_ = nullptr;  // shared with the other side; always ends with a zero
};

}  // namespace zeroth
