#include "comm/meeting_point.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <utility>

#include "base/error.h"
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace zeroth::comm {
namespace {

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
};

Address address_of(const std::string& run_name) {
  const std::string text =
      fmt::format("zeroth-{}-{:016x}", ::getuid(), std::hash<std::string>{}(run_name));
  Address address;
  address.name.sun_family = AF_UNIX;
  // The first byte stays zero: that makes the name abstract.
  std::copy(text.begin(), text.end(), address.name.sun_path + 1);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

Descriptor open_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) {
    throw Error(ErrorKind::kCommunication,
                fmt::format("cannot open a local socket: {}", std::strerror(errno)));
  }
  return socket;
}

// Neither side of a meeting waits long for the other's few bytes.
void limit_waiting(int socket, int seconds) {
  const timeval limit{.tv_sec = seconds, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

// The process at the other end, if it is this user's.
std::optional<pid_t> peer_of_this_user(int socket) {
  ucred who{};
  socklen_t length = sizeof(who);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0 || who.uid != ::getuid()) {
    return std::nullopt;
  }
  return who.pid;
}

// Room for one descriptor beside a message.
union Ancillary {
  cmsghdr header;
  std::array<std::byte, CMSG_SPACE(sizeof(int))> bytes;
};

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : value_(other.take()) {
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(value_, other.value_);
  return *this;
}

Descriptor::~Descriptor() {
  if (value_ >= 0) {
    ::close(value_);
  }
}

int Descriptor::take() noexcept {
  return std::exchange(value_, -1);
}

Descriptor listen_for_ranks(const std::string& run_name) {
  Descriptor socket = open_socket();
  const Address address = address_of(run_name);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address.name), address.length) != 0 ||
      ::listen(socket.get(), 128) != 0) {
    throw Error(ErrorKind::kCommunication,
                fmt::format("rank 0 of run {} cannot open its meeting point: {}\n  Another run of "
                            "this name is starting on this host (under a launcher MASTER_PORT "
                            "names a run: give each its own), or two processes have rank 0.",
                            run_name,
                            std::strerror(errno)));
  }
  return socket;
}

std::optional<Guest> accept_rank(const Descriptor& listener, int wait_ms) {
  pollfd waiting{.fd = listener.get(), .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, wait_ms) <= 0) {
    return std::nullopt;
  }
  Guest guest{.connection = Descriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC))};
  const int socket = guest.connection.get();
  const std::optional<pid_t> pid = peer_of_this_user(socket);
  if (!pid) {
    return std::nullopt;
  }
  guest.pid = *pid;
  limit_waiting(socket, 1);
  if (::recv(socket, &guest.hello, sizeof(Hello), 0) != static_cast<ssize_t>(sizeof(Hello))) {
    return std::nullopt;
  }
  return guest;
}

void hand_over(const Guest& guest, int file) {
  char byte = 1;
  iovec content{.iov_base = &byte, .iov_len = 1};
  Ancillary ancillary{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.bytes.data();
  message.msg_controllen = ancillary.bytes.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &file, sizeof(int));
  // A guest that is gone by now is missed, and named, when the time to join is over.
  ::sendmsg(guest.connection.get(), &message, MSG_NOSIGNAL);
}

std::optional<Descriptor> call_first_rank(const std::string& run_name) {
  Descriptor socket = open_socket();
  const Address address = address_of(run_name);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.name), address.length) !=
          0 ||
      !peer_of_this_user(socket.get())) {
    return std::nullopt;
  }
  return socket;
}

std::optional<Descriptor> introduce(const Descriptor& connection, const Hello& hello) {
  if (::send(connection.get(), &hello, sizeof(hello), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(sizeof(hello))) {
    return std::nullopt;
  }
  limit_waiting(connection.get(), 10);
  char byte = 0;
  iovec content{.iov_base = &byte, .iov_len = 1};
  Ancillary ancillary{};
  msghdr message{};
  message.msg_iov = &content;
  message.msg_iovlen = 1;
  message.msg_control = ancillary.bytes.data();
  message.msg_controllen = ancillary.bytes.size();
  if (::recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC) != 1) {
    return std::nullopt;
  }
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) {
    return std::nullopt;
  }
  int file = -1;
  std::memcpy(&file, CMSG_DATA(header), sizeof(int));
  return Descriptor(file);
}

}  // namespace zeroth::comm
