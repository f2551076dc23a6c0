#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "comm/communicator.h"
#include "comm/make.h"
#include "comm/shared_communicator.h"
#include "comm/sum.h"

namespace zeroth::comm {
namespace {

class AlignedBuffer : public Buffer {
 public:
  explicit AlignedBuffer(std::int64_t bytes)
      : bytes_(bytes),
        data_(static_cast<std::byte*>(
            ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{kAlignment}))) {
    std::memset(data_, 0, static_cast<std::size_t>(bytes));
  }

  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;

  ~AlignedBuffer() override { ::operator delete (data_, std::align_val_t{kAlignment}); }

  [[nodiscard]] std::byte* data() const noexcept override { return data_; }

  [[nodiscard]] std::int64_t bytes() const noexcept override { return bytes_; }

 private:
  static constexpr std::size_t kAlignment = 4096;  // a page: files are read straight into it
  std::int64_t bytes_;
  std::byte* data_;
};

class LocalCommunicator : public Communicator {
 public:
  [[nodiscard]] std::int64_t rank() const noexcept override { return 0; }

  [[nodiscard]] std::int64_t size() const noexcept override { return 1; }

  [[nodiscard]] BufferPtr allocate(std::int64_t bytes) override {
    ZEROTH_CHECK(bytes >= 0, "a size of {}", bytes);
    try {
      return std::make_shared<AlignedBuffer>(bytes);
    } catch (const std::bad_alloc&) {
      throw Error(ErrorKind::kMemory,
                  fmt::format("not enough memory for a buffer of {} bytes", bytes));
    }
  }

  [[nodiscard]] BufferPtr allocate_shared(std::int64_t bytes) override { return allocate(bytes); }

  [[nodiscard]] InFlight reduce_scatter(const std::string& /*label*/,
                                        BufferPtr input,
                                        std::vector<Span> ranges,
                                        std::span<float> output,
                                        bool accumulate,
                                        NumberType type) override {
    check_ranges(ranges, *input, output, type, 0, 1);
    const std::byte* source =
        input->data() + static_cast<std::size_t>(ranges[0].begin) * bytes_of(type);
    sum_in_order({&source, 1}, output, accumulate, type);
    return {};
  }

  [[nodiscard]] InFlight all_gather(const std::string& /*label*/,
                                    std::span<const std::byte> shard,
                                    BufferPtr full,
                                    Placement placement) override {
    placement = checked_placement(placement, shard.size(), *full, 1);
    copy_bytes(full->data() + placement.offset, shard.data(), shard.size(), shard.size());
    return {};
  }

  [[nodiscard]] InFlight all_reduce(const std::string& /*label*/,
                                    std::span<float> /*values*/) override {
    return {};
  }

  [[nodiscard]] InFlight broadcast(const std::string& /*label*/,
                                   std::span<std::byte> /*bytes*/,
                                   std::int64_t root) override {
    ZEROTH_CHECK_EQ(root, std::int64_t{0}, "root of one rank");
    return {};
  }

  [[nodiscard]] InFlight send(const std::string& label,
                              std::span<const std::byte> /*bytes*/,
                              std::int64_t to) override {
    ZEROTH_CHECK(false, "'{}': one rank alone sends to rank {}", label, to);
    return {};
  }

  [[nodiscard]] InFlight recv(const std::string& label,
                              std::span<std::byte> /*bytes*/,
                              std::int64_t from) override {
    ZEROTH_CHECK(false, "'{}': one rank alone receives from rank {}", label, from);
    return {};
  }

  [[nodiscard]] InFlight all_to_all(const std::string& /*label*/,
                                    std::span<const std::byte> input,
                                    std::span<std::byte> output) override {
    ZEROTH_CHECK_EQ(input.size(), output.size(), "all_to_all");
    copy_bytes(output.data(), input.data(), input.size(), input.size());
    return {};
  }

  void barrier(const std::string& /*label*/) override {}
};

}  // namespace

std::unique_ptr<Communicator> make_local_communicator() {
  return std::make_unique<LocalCommunicator>();
}

}  // namespace zeroth::comm
