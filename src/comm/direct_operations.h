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

// Labels are cut to the room there is.
[[nodiscard]] MessageHeader make_header(const std::string& label, std::size_t bytes);

struct Ends {
  int from = 0;  // world ranks
  int to = 0;
};

// kCommunication, naming both sides, unless the receiver expects what was sent.
void check_header(const MessageHeader& header,
                  const std::string& label,
                  std::size_t bytes,
                  const Ends& ends);

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
  CallQueue& queue_;
  std::string label_;
  std::span<std::byte> left_;
  bool begun_ = false;
};

}  // namespace zeroth::comm
