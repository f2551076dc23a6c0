#include "worker/packing.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/log.h"
#include "base/machine_memory.h"
#include "plan/byte_size.h"
#include "plan/packing.h"
#include <fmt/format.h>

namespace zeroth::worker {
namespace {

using kernels::PackedWeight;
using kernels::Packing;
using plan::Bytes;
using plan::PackedFor;

bool packs(at::ScalarType dtype) {
  constexpr std::int64_t kSize = 64;
  return PackedWeight::bytes_for({kSize, kSize, dtype}, Packing::kForward) > 0;
}

std::int64_t free_shared_memory() {
  std::error_code error;
  const auto space = std::filesystem::space("/dev/shm", error);
  return error ? 0 : static_cast<std::int64_t>(space.available);
}

std::int64_t packed_for_forward(const models::Model& model, at::ScalarType dtype) {
  std::int64_t bytes = 0;
  for (const auto& unit : model.units) {
    for (const models::Parameter& parameter : unit->parameters()) {
      if (parameter.is_factor) {
        const std::vector<std::int64_t> sizes = parameter.sizes();
        bytes += PackedWeight::bytes_for({sizes[0], sizes[1], dtype}, Packing::kForward);
      }
    }
  }
  return bytes;
}

// Hosts differ in what is free, and every rank must do the same.
std::int64_t least_of_all(std::int64_t here, comm::Communicator& comm) {
  const std::vector<double> own{static_cast<double>(here)};
  const std::vector<double> all = comm.gather_values("what is packed", own);
  return static_cast<std::int64_t>(*std::min_element(all.begin(), all.end()));
}

}  // namespace

plan::PlanInput settled(plan::PlanInput input, at::ScalarType dtype, comm::Communicator& comm) {
  if (!packs(dtype)) {
    input.packed = PackedFor::kNothing;
    input.chooses_packed = false;
  }
  const plan::PackingRoom room{.rank = Bytes(available_memory() / input.ranks_on_host()),
                               .shared = Bytes(free_shared_memory())};
  input = plan::settle_packing(input, room);
  input.packed =
      static_cast<PackedFor>(least_of_all(static_cast<std::int64_t>(input.packed), comm));
  if (const std::string line = plan::packing_line(input, room); !line.empty()) {
    log::info(line);
  }
  return input;
}

kernels::Packing packing_of(plan::PackedFor packed) noexcept {
  switch (packed) {
    case PackedFor::kForward:
      return Packing::kForward;
    case PackedFor::kBoth:
      return Packing::kBoth;
    case PackedFor::kNothing:
      break;
  }
  return Packing::kNone;
}

kernels::Packing inference_packing(const config::RunConfig& config,
                                   const models::Model& model,
                                   at::ScalarType dtype,
                                   comm::Communicator& comm) {
  if (config.kernels != config::KernelChoice::kAuto ||
      config.pack_weights == config::PackWeights::kOff) {
    return Packing::kNone;
  }
  const auto width = static_cast<std::int64_t>(c10::elementSize(dtype));
  const std::int64_t packed = packed_for_forward(model, dtype);
  const std::int64_t bytes = model.num_parameters() * width + packed;
  const bool shares = config.model.share_frozen && comm.size() > 1;
  const std::int64_t copies = shares ? 1 : comm.on_host().size;
  const bool fits =
      2 * bytes * copies <= available_memory() && (!shares || bytes <= free_shared_memory());
  const bool asked = config.pack_weights == config::PackWeights::kForward;
  const bool packs = least_of_all(fits || asked ? 1 : 0, comm) > 0;
  if (packed > 0) {
    log::info(packs ? fmt::format("weights are packed for forward, {} a host",
                                  plan::byte_text(Bytes(packed * copies)))
                    : fmt::format("weights are not packed: {} should be free, and {} are",
                                  plan::byte_text(Bytes(2 * bytes * copies)),
                                  plan::byte_text(Bytes(available_memory()))));
  }
  return packs ? Packing::kForward : Packing::kNone;
}

}  // namespace zeroth::worker
