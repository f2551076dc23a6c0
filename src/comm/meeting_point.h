#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <sys/types.h>

// Where the processes of a run on one host find each other: a local socket in the abstract name
// space, which vanishes with its process. Over it the first rank hands the others the descriptor of
// the segment.
namespace zeroth::comm {

// Closes a descriptor when it goes.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) noexcept : value_(value) {}

  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  [[nodiscard]] int get() const noexcept { return value_; }

  [[nodiscard]] int take() noexcept;

 private:
  int value_;
};

struct Hello {
  std::int32_t rank = 0;
  std::int32_t size = 0;
};

struct Guest {
  Descriptor connection;
  Hello hello;
  pid_t pid = 0;
};

// kCommunication if another process listens under this run's name.
[[nodiscard]] Descriptor listen_for_ranks(const std::string& run_name);
// The next process of this user that says hello, if one does within the time.
[[nodiscard]] std::optional<Guest> accept_rank(const Descriptor& listener, int wait_ms);
void hand_over(const Guest& guest, int file);

// Connected, if somebody listens.
[[nodiscard]] std::optional<Descriptor> call_first_rank(const std::string& run_name);
// Says hello and waits for the segment's descriptor; nothing if the first rank hung up.
[[nodiscard]] std::optional<Descriptor> introduce(const Descriptor& connection, const Hello& hello);

}  // namespace zeroth::comm
