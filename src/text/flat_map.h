#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace zeroth::text {

// An open-addressing table from 64-bit keys to small values, sized once. Looked up for every pair
// of symbols of a text, where std::unordered_map costs several times as much. Key ~0 is reserved.
template <typename Value>
class FlatMap {
 public:
  // Grows by itself; `num_entries` spares the growing.
  explicit FlatMap(std::size_t num_entries = 0) : slots_(std::bit_ceil(2 * num_entries + 2)) {}

  // The value now stored for `key`: `value`, or the older one if there is one.
  Value& insert(std::uint64_t key, Value value) {
    Slot* slot = &slots_[position_of(key)];
    if (slot->key == kFree) {
      if (2 * ++size_ > slots_.size()) {
        grow();
        slot = &slots_[position_of(key)];
      }
      *slot = {key, value};
    }
    return slot->value;
  }

  [[nodiscard]] const Value* find(std::uint64_t key) const noexcept {
    const Slot& slot = slots_[position_of(key)];
    return slot.key == kFree ? nullptr : &slot.value;
  }

  // Fetches what insert() and find() will touch, so that many of them need not wait one after the
  // other.
  void prefetch(std::uint64_t key) const noexcept { __builtin_prefetch(&slots_[home_of(key)]); }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};

  struct Slot {
    std::uint64_t key = kFree;
    Value value{};
  };

  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.key != kFree) {
        slots_[position_of(slot.key)] = slot;
      }
    }
  }

  [[nodiscard]] std::size_t home_of(std::uint64_t key) const noexcept {
    std::uint64_t mixed = key * 0x9E3779B97F4A7C15ULL;  // Fibonacci hashing
    mixed ^= mixed >> 32;
    return mixed & (slots_.size() - 1);
  }

  [[nodiscard]] std::size_t position_of(std::uint64_t key) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t position = home_of(key);
    while (slots_[position].key != key && slots_[position].key != kFree) {
      position = (position + 1) & mask;
    }
    return position;
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace zeroth::text
