#include "offload/swap_space.h"

#include <fmt/format.h>

namespace zeroth::offload {

SwapSpace::SwapSpace(const std::filesystem::path& folder,
                     const IoOptions& options,
                     std::optional<IoKind> asked)
    : file_(folder, 0),
      io_(choose_io(folder, options, asked)),
      text_(fmt::format("{} ({})", folder.string(), io_.text)) {
}

InFlight SwapSpace::read(std::int64_t offset, std::byte* memory, std::int64_t bytes) {
  traffic_.read += bytes;
  return io_.io->read({&file_, offset, memory, bytes});
}

InFlight SwapSpace::write(std::int64_t offset, const std::byte* memory, std::int64_t bytes) {
  traffic_.written += bytes;
  // A transfer serves both directions; a write only looks.
  return io_.io->write({&file_, offset, const_cast<std::byte*>(memory), bytes});
}

}  // namespace zeroth::offload
