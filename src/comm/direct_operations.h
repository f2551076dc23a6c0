#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "comm/call_queue.h"

// From one rank to one other: a message passes in pieces through the two halves of their channel.
namespace zeroth::comm {

struct MessageHeader {
  std::uint64_t bytes = 0;
  Text label{};
};

class Send : public Operation {
 public:
  Send(CallQueue& queue, const std::string& label, std::span<const std::byte> bytes, int to);
  bool advance() override;

 private:
  void write_piece(std::byte* piece);

  CallQueue& queue_;
  MessageHeader header_;
  std::span<const std::byte> left_;
  bool begun_ = false;
};

class Receive : public Operation {
 public:
  Receive(CallQueue& queue, std::string label, std::span<std::byte> bytes, int from);
  bool advance() override;

 private:
  void read_piece(const std::byte* piece);
  void check(const MessageHeader& header) const;

  CallQueue& queue_;
  std::string label_;
  std::span<std::byte> left_;
  bool begun_ = false;
};

}  // namespace zeroth::comm
