#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

// What ranks of one host share: plain structs at fixed places of one segment, all zero at first.
//
// [Note: how ranks wait] Each rank has a bell, a futex word. Whoever changes something that others
// may wait for stores it, then rings their bells. A rank reads its bell, looks whether it can go
// on, and if not sleeps until the bell differs from what it read; so no ring is lost.
namespace zeroth::comm {

inline constexpr std::uint64_t kRecords = 16;      // collectives a rank may be ahead of the slowest
inline constexpr std::uint64_t kWindowPieces = 4;  // how far a rank may fill ahead of the slowest
inline constexpr std::size_t kInlineBytes = 512;
inline constexpr std::uint64_t kPrivateSource = ~std::uint64_t{0};

// kFollowed: failed because another did, which is the one to name.
enum class RankState : std::uint32_t { kAbsent, kJoined, kLeft, kFailed, kFollowed };
enum class StartState : std::uint32_t { kWaiting, kReady, kRefused };

using Text = std::array<char, 256>;
using LongText = std::array<char, 1024>;

// One collective as one rank called it.
struct CallRecord {
  std::uint64_t hash = 0;
  std::uint64_t source = kPrivateSource;  // place of the input in the segment, if it lies there
  Text description{};
  std::array<std::byte, kInlineBytes> payload{};
};

struct alignas(64) RankSlot {
  std::atomic<RankState> state;
  std::int32_t pid;
  std::uint64_t start_time;  // of the process, in clock ticks since boot: tells a reused pid apart
  Text activity;
  LongText failure;  // written before state becomes kFailed or kFollowed

  alignas(64) std::atomic<std::uint32_t> bell;
  std::atomic<std::uint32_t> sleeping;

  alignas(64) std::atomic<std::uint64_t> posted;  // collectives called so far
  std::atomic<std::uint64_t> finished;            // collectives whose peers' data were read
  std::atomic<std::uint64_t> filled;              // pieces put into this rank's window so far
  std::atomic<std::uint64_t> drained;             // pieces taken from all windows so far

  std::array<CallRecord, kRecords> calls;  // collective s is at s % kRecords
};

// From one rank to one other.
struct alignas(64) Channel {
  std::atomic<std::uint64_t> written;  // pieces
  std::atomic<std::uint64_t> read;
};

struct alignas(64) ControlHeader {
  std::atomic<StartState> start;
  std::int32_t size;
  LongText refusal;
};

// Starts each buffer in the segment.
struct RegionHeader {
  std::atomic<std::uint32_t> released;  // ranks that are done with it; the last returns its memory
};

inline constexpr std::size_t kPage = 4096;

}  // namespace zeroth::comm
