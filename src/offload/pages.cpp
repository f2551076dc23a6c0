#include "offload/pages.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "offload/swap_file.h"

namespace zeroth::offload {

Pages::Pages(std::int64_t bytes)
    : bytes_(bytes),
      memory_(static_cast<std::byte*>(std::aligned_alloc(static_cast<std::size_t>(kAlignment),
                                                         static_cast<std::size_t>(bytes)))) {
  if (memory_ == nullptr) {
    throw std::bad_alloc();
  }
  std::memset(memory_.get(), 0, static_cast<std::size_t>(bytes));
}

void Pages::Free::operator()(std::byte* memory) const noexcept {
  std::free(memory);
}

}  // namespace zeroth::offload
