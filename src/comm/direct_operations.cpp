#include "comm/direct_operations.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/sum.h"
#include <fmt/format.h>

namespace zeroth::comm {
namespace {

constexpr int kSending = 0;
constexpr int kReceiving = 1;

}  // namespace

MessageHeader make_header(const std::string& label, std::size_t bytes) {
  MessageHeader header{.bytes = bytes};
  std::copy_n(label.begin(), std::min(label.size(), header.label.size() - 1), header.label.begin());
  return header;
}

void check_header(const MessageHeader& header,
                  const std::string& label,
                  std::size_t bytes,
                  const Ends& ends) {
  const std::string sent{header.label.data(), ::strnlen(header.label.data(), header.label.size())};
  if (header.bytes != bytes || sent != label.substr(0, header.label.size() - 1)) {
    throw Error(ErrorKind::kCommunication,
                fmt::format("ranks differ in a message: rank {} sent {} bytes as '{}', rank {} "
                            "receives {} bytes as '{}'",
                            ends.from,
                            header.bytes,
                            sent,
                            ends.to,
                            bytes,
                            label));
  }
}

Send::Send(CallQueue& queue, const std::string& label, std::span<const std::byte> bytes, int to)
    : queue_(queue), header_(make_header(label, bytes.size())), left_(bytes) {
  peer = to;
  channel = kSending;
}

bool Send::advance() {
  Channel& line = queue_.segment().channel(queue_.rank(), peer);
  while (!begun_ || !left_.empty()) {
    const std::uint64_t piece = line.written.load();
    if (piece - line.read.load() >= 2) {
      return false;
    }
    if (piece == 0) {
      queue_.segment().commit_channel(queue_.rank(), peer);
    }
    write_piece(queue_.segment().channel_window(queue_.rank(), peer, piece));
    line.written.store(piece + 1);
    queue_.ring(peer);
  }
  return true;
}

void Send::write_piece(std::byte* piece) {
  std::size_t room = queue_.segment().channel_bytes();
  if (!begun_) {
    std::memcpy(piece, &header_, sizeof(header_));
    piece += sizeof(header_);
    room -= sizeof(header_);
    begun_ = true;
  }
  const std::size_t bytes = std::min(room, left_.size());
  copy_bytes(piece, left_.data(), bytes, 0);
  left_ = left_.subspan(bytes);
}

Receive::Receive(CallQueue& queue, std::string label, std::span<std::byte> bytes, int from)
    : queue_(queue), label_(std::move(label)), left_(bytes) {
  peer = from;
  channel = kReceiving;
}

bool Receive::advance() {
  Channel& line = queue_.segment().channel(peer, queue_.rank());
  while (!begun_ || !left_.empty()) {
    const std::uint64_t piece = line.read.load();
    if (piece == line.written.load()) {
      return false;
    }
    read_piece(queue_.segment().channel_window(peer, queue_.rank(), piece));
    line.read.store(piece + 1);
    queue_.ring(peer);
  }
  return true;
}

void Receive::read_piece(const std::byte* piece) {
  std::size_t room = queue_.segment().channel_bytes();
  if (!begun_) {
    MessageHeader header;
    std::memcpy(&header, piece, sizeof(header));
    check_header(
        header, label_, left_.size(), {queue_.world_rank(peer), queue_.world_rank(queue_.rank())});
    piece += sizeof(header);
    room -= sizeof(header);
    begun_ = true;
  }
  const std::size_t bytes = std::min(room, left_.size());
  copy_bytes(left_.data(), piece, bytes, 0);
  left_ = left_.subspan(bytes);
}

}  // namespace zeroth::comm
