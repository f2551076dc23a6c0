#pragma once

#include <stdexcept>
#include <string>

namespace zeroth {

// What kind of thing went wrong; decides the exit code (docs/errors.md).
enum class ErrorKind {
  kConfig,
  kNotSupported,
  kUsage,
  kData,
  kModel,
  kCheckpoint,
  kFormat,
  kCommunication,
  kMemory,
  kDevice,
  kDisk,
  kInternal,
};

// The one exception of this project. A message says what happened, which value from which source,
// and how to mend it.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

// 2 for configuration and usage, 3 for data, 4 for models and formats, 5 for communication,
// 6 for memory, device and disk, 70 for our own bugs.
[[nodiscard]] int exit_code(ErrorKind kind) noexcept;

// "configuration error", "data error", ...: how the kind is named before a message.
[[nodiscard]] const char* kind_name(ErrorKind kind) noexcept;

}  // namespace zeroth
