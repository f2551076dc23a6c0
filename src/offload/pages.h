#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace zeroth::offload {

// Memory that files can be read into past the page cache.
class Pages {
 public:
  // A multiple of kAlignment; the pages are there, not only promised. std::bad_alloc without room.
  explicit Pages(std::int64_t bytes);

  [[nodiscard]] std::byte* data() const noexcept { return memory_.get(); }

  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };

  std::int64_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace zeroth::offload
