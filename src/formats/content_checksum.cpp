#include "formats/content_checksum.h"

#include <array>
#include <new>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace zeroth::formats {

struct ContentChecksum::State {
  XXH3_state_t value;
};

ContentChecksum::ContentChecksum() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->value);
}

ContentChecksum::~ContentChecksum() = default;

void ContentChecksum::add(const TensorToWrite& tensor, std::span<const std::byte> bytes) {
  add_text(tensor.name);
  add_text(dtype_name(tensor.dtype));
  add_number(tensor.shape.size());
  for (const std::int64_t size : tensor.shape) {
    add_number(static_cast<std::uint64_t>(size));
  }
  XXH3_64bits_update(&state_->value, bytes.data(), bytes.size());
}

std::string ContentChecksum::hex() const {
  return fmt::format("{:016x}", XXH3_64bits_digest(&state_->value));
}

// With its length in front, so that no two lists of texts hash alike.
void ContentChecksum::add_text(std::string_view text) {
  add_number(text.size());
  XXH3_64bits_update(&state_->value, text.data(), text.size());
}

// Byte by byte: the same on every processor.
void ContentChecksum::add_number(std::uint64_t number) {
  std::array<unsigned char, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<unsigned char>(number >> (8 * i));
  }
  XXH3_64bits_update(&state_->value, bytes.data(), bytes.size());
}

}  // namespace zeroth::formats
