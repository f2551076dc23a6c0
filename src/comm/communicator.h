#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/in_flight.h"

// Collectives between the ranks of one group. All ranks call the same operations in the same order;
// each call carries a sequence number and a hash of (operation, label, sizes), and ranks that
// differ get an Error of kCommunication that names both sides, not a hang. A rank that died ends
// the wait of the others with an Error within seconds.
//
// Starting and waiting are different verbs: a call returns an InFlight, which owns every buffer it
// works on until it is waited for. Reductions add contributions in rank order, in fp32, so that a
// result never depends on timing.
//
// What overlaps: starting tells the peers that this rank's inputs are ready and returns; copying
// and adding happen while this rank waits for this or any later operation. So ranks that come late
// cost nothing as long as the others compute. Several operations may be in flight; they may be
// waited for in any order, not the same one on every rank. A communicator belongs to one thread.
namespace zeroth::comm {

using zeroth::InFlight;  // an operation that was started

// Memory that collectives can work on without copying: from allocate() or allocate_shared(), or
// private memory wrapped by a caller. The pointer is what this rank reads and writes.
class Buffer {
 public:
  virtual ~Buffer() = default;
  [[nodiscard]] virtual std::byte* data() const noexcept = 0;
  [[nodiscard]] virtual std::int64_t bytes() const noexcept = 0;

  template <typename T>
  [[nodiscard]] std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data()), static_cast<std::size_t>(bytes()) / sizeof(T)};
  }
};

using BufferPtr = std::shared_ptr<Buffer>;

// Zeroed memory of this rank alone, as a target of gathers.
[[nodiscard]] BufferPtr make_private_buffer(std::size_t bytes);

// Half-open range of elements.
struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// What the elements of a reduction's input are; sums are fp32 whatever they are.
enum class NumberType { kFloat32, kBFloat16, kFloat16 };

[[nodiscard]] constexpr std::size_t bytes_of(NumberType type) noexcept {
  return type == NumberType::kFloat32 ? 4 : 2;
}

// Where a gather puts rank r's shard: at byte r * stride + offset. A stride of 0 means end to end.
struct Placement {
  std::size_t stride = 0;
  std::size_t offset = 0;

  friend bool operator==(const Placement&, const Placement&) = default;
};

// Every rank's values on their way, rank after rank.
class ValuesInFlight {
 public:
  ValuesInFlight() = default;

  ValuesInFlight(InFlight work, BufferPtr all) : work_(std::move(work)), all_(std::move(all)) {}

  [[nodiscard]] std::vector<double> wait();

 private:
  InFlight work_;
  BufferPtr all_;
};

// A rank among those of its host.
struct HostPlace {
  std::int64_t rank = 0;
  std::int64_t size = 1;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  [[nodiscard]] virtual std::int64_t rank() const noexcept = 0;
  [[nodiscard]] virtual std::int64_t size() const noexcept = 0;

  // The ranks that look at one buffer of allocate_shared().
  [[nodiscard]] virtual HostPlace on_host() const noexcept { return {rank(), size()}; }

  // Collective. Each rank gets a zeroed buffer of `bytes` of its own that its peers' reductions
  // read in place.
  [[nodiscard]] virtual BufferPtr allocate(std::int64_t bytes) = 0;
  // Collective. One zeroed buffer of `bytes` for all ranks of a host (each host has one): a
  // gathered unit.
  [[nodiscard]] virtual BufferPtr allocate_shared(std::int64_t bytes) = 0;

  // Rank r's output becomes the sum over all ranks, in rank order and in fp32, of input elements
  // [ranges[r].begin, ranges[r].end), which are of `type`; `output` has that range's size. With
  // `accumulate` the sum is added to what output holds. `input` comes from allocate() and must not
  // be written before wait(). Ranges may be empty and of different sizes.
  [[nodiscard]] virtual InFlight reduce_scatter(const std::string& label,
                                                BufferPtr input,
                                                std::vector<Span> ranges,
                                                std::span<float> output,
                                                bool accumulate,
                                                NumberType type = NumberType::kFloat32) = 0;

  // `full` gets the ranks' shards, all of shard.size() bytes, where `placement` says. If it comes
  // from allocate_shared(), each rank writes its own part and all see the whole; else each fills
  // its own copy. `shard` may be this rank's own part of `full`.
  [[nodiscard]] virtual InFlight all_gather(const std::string& label,
                                            std::span<const std::byte> shard,
                                            BufferPtr full,
                                            Placement placement = {}) = 0;

  // values becomes the sum over ranks, in rank order (fp32: input from allocate() is not needed;
  // for small vectors).
  [[nodiscard]] virtual InFlight all_reduce(const std::string& label, std::span<float> values) = 0;

  [[nodiscard]] virtual InFlight broadcast(const std::string& label,
                                           std::span<std::byte> bytes,
                                           std::int64_t root) = 0;
  [[nodiscard]] virtual InFlight send(const std::string& label,
                                      std::span<const std::byte> bytes,
                                      std::int64_t to) = 0;
  [[nodiscard]] virtual InFlight recv(const std::string& label,
                                      std::span<std::byte> bytes,
                                      std::int64_t from) = 0;
  // Part r of `input` goes to rank r, which puts it at part (sender) of its output; equal parts.
  [[nodiscard]] virtual InFlight all_to_all(const std::string& label,
                                            std::span<const std::byte> input,
                                            std::span<std::byte> output) = 0;
  virtual void barrier(const std::string& label) = 0;

  // What this rank is busy with between operations ("forward of update 7"): named to the others if
  // it dies, and to the observer, if there is one, which may throw.
  void note(const std::string& activity);

  using Observer = std::function<void(const std::string& activity)>;

  void on_note(Observer observer) { observer_ = std::move(observer); }

  // This rank has failed: the others' waits end with an Error that names it and gives the reason.
  virtual void abort(const std::string& reason) noexcept;

  // Every rank's values, rank after rank: for counts and norms, which callers then add in rank
  // order. `values` must stay until the wait.
  [[nodiscard]] ValuesInFlight start_gathering_values(const std::string& label,
                                                      std::span<const double> values);
  [[nodiscard]] std::vector<double> gather_values(const std::string& label,
                                                  std::span<const double> values);

 protected:
  // For peers to read when this rank is gone.
  virtual void tell_activity(const std::string& activity) noexcept;

 private:
  Observer observer_;
};

}  // namespace zeroth::comm
