#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "formats/safetensors.h"

namespace zeroth::formats {

// XXH3-64 over each tensor's name, type, shape and bytes, in the order in which they are added.
class ContentChecksum {
 public:
  static constexpr std::size_t kDigits = 16;

  ContentChecksum();
  ContentChecksum(const ContentChecksum&) = delete;
  ContentChecksum& operator=(const ContentChecksum&) = delete;
  ~ContentChecksum();

  void add(const TensorToWrite& tensor, std::span<const std::byte> bytes);
  [[nodiscard]] std::string hex() const;  // kDigits characters

 private:
  void add_text(std::string_view text);
  void add_number(std::uint64_t number);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zeroth::formats
