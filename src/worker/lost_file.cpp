#include "worker/lost_file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include <fcntl.h>
#include <unistd.h>

// Only what a signal handler may do: no memory is allocated, nothing is locked.
namespace zeroth::worker {
namespace {

std::atomic<const WorkerStatus*> status_of_process{nullptr};
std::atomic_flag speaking = ATOMIC_FLAG_INIT;

constexpr std::size_t kLongestLine = 5000;  // a path of 4096 and what stands before it

class Text {
 public:
  void add(std::string_view part) noexcept {
    const std::size_t count = std::min(part.size(), characters_.size() - size_);
    std::memcpy(characters_.data() + size_, part.data(), count);
    size_ += count;
  }

  void clear() noexcept { size_ = 0; }

  [[nodiscard]] std::string_view view() const noexcept { return {characters_.data(), size_}; }

 private:
  std::array<char, 2 * kLongestLine> characters_{};
  std::size_t size_ = 0;
};

// Static: a thread's stack may be small.
Text line;
Text message;

std::uintptr_t take_hexadecimal(std::string_view& text) noexcept {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::uintptr_t value = 0;
  while (!text.empty() && kDigits.find(text.front()) != std::string_view::npos) {
    value = value * 16 + kDigits.find(text.front());
    text.remove_prefix(1);
  }
  return value;
}

// Of a line of /proc/self/maps, "begin-end access offset device inode   path": whether the address
// lies there.
bool covers(std::string_view mapping, std::uintptr_t address) noexcept {
  const std::uintptr_t begin = take_hexadecimal(mapping);
  mapping.remove_prefix(mapping.empty() ? 0 : 1);
  return begin <= address && address < take_hexadecimal(mapping);
}

// The mappings of this process, a line each.
class Mappings {
 public:
  Mappings() noexcept : file_(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}

  ~Mappings() { ::close(file_); }

  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;

  // Reads one into `line`; false: there was none.
  bool next() noexcept {
    line.clear();
    char character = 0;
    while (take(character)) {
      if (character == '\n') {
        return true;
      }
      line.add({&character, 1});
    }
    return false;
  }

 private:
  bool take(char& character) noexcept {
    if (at_ == size_) {
      at_ = 0;
      size_ = std::max<ssize_t>(::read(file_, piece_.data(), piece_.size()), 0);
    }
    if (size_ == 0) {
      return false;
    }
    character = piece_[static_cast<std::size_t>(at_++)];
    return true;
  }

  int file_;
  std::array<char, 512> piece_{};
  ssize_t size_ = 0;
  ssize_t at_ = 0;
};

// Of the file that is mapped there; empty: none is.
std::string_view path_at(std::uintptr_t address) noexcept {
  Mappings mappings;
  while (mappings.next()) {
    if (covers(line.view(), address)) {
      const std::size_t path = line.view().find('/');
      return path == std::string_view::npos ? "" : line.view().substr(path);
    }
  }
  return "";
}

// Memory without a file is no file that was cut, though it has a name here.
bool is_in_memory(std::string_view path) noexcept {
  return path.starts_with("/dev/shm/") || path.starts_with("/memfd:") || path.starts_with("/SYSV");
}

void tell(std::string_view path) noexcept {
  for (const std::string_view part :
       {std::string_view(kind_name(ErrorKind::kDisk)),
        std::string_view(": "),
        path,
        std::string_view(" was cut, or its disk failed, while the run read it\n  Weights that do "
                         "not train are read where they lie: bring the file back as it was, leave "
                         "it alone while a run uses it, and start again.")}) {
    message.add(part);
  }
  if (!status_of_process.load()->set_failure(message.view())) {
    message.add("\n");
    [[maybe_unused]] const ssize_t written =
        ::write(STDERR_FILENO, message.view().data(), message.view().size());
  }
}

void answer(int signal, siginfo_t* info, void* /*context*/) {
  while (speaking.test_and_set()) {
    ::pause();  // another thread is about to end the process
  }
  const std::string_view path = path_at(reinterpret_cast<std::uintptr_t>(info->si_addr));
  if (path.empty() || is_in_memory(path)) {
    std::signal(signal, SIG_DFL);  // and what failed is tried again
    speaking.clear();
    return;
  }
  tell(path);
  ::_exit(exit_code(ErrorKind::kDisk));
}

}  // namespace

void answer_lost_files(const WorkerStatus& status) {
  status_of_process = &status;

  struct sigaction action {};

  action.sa_sigaction = answer;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace zeroth::worker
