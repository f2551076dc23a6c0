#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/call_queue.h"
#include "comm/direct_operations.h"
#include "comm/mpi/mpi_session.h"
#include "comm/shared_buffer.h"

// The operations between ranks of several hosts. The queue of the host's ranks carries them: it has
// seen that all ranks of this host called the same; here the hosts compare, then move the data.
namespace zeroth::comm {

struct MpiContext {
  std::shared_ptr<MpiSession> session;
  CallQueue* queue = nullptr;  // of this host's ranks; outlives every operation it carries
};

class MpiOperation : public Operation {
 public:
  explicit MpiOperation(MpiContext context);
  bool advance() final;

 protected:
  // Repeated until true.
  virtual bool step() = 0;

  [[nodiscard]] MpiSession& session() const noexcept { return *context_.session; }

  void send(std::span<const std::byte> bytes, int to);
  void receive(std::span<std::byte> bytes, int from);

  [[nodiscard]] MpiRequests& requests() noexcept { return requests_; }

 private:
  struct Told {
    std::uint64_t hash = 0;
    Text text{};
  };

  bool agree();
  void compare() const;

  MpiContext context_;
  MpiRequests requests_;
  enum class Phase { kBegin, kAgreeing, kAgreed } phase_ = Phase::kBegin;
  std::vector<Told> told_;  // by host
};

// Done when all ranks of all hosts have called it; serves as a barrier too.
class MpiAgreement : public MpiOperation {
 public:
  explicit MpiAgreement(MpiContext context) : MpiOperation(std::move(context)) {
    peers_read_mine = true;  // the leader has heard from the other hosts
  }

 protected:
  bool step() override { return true; }
};

// Each rank sends its pieces straight from its buffer; the owner adds them, those of its own host
// from their buffers, in the order of world ranks.
class MpiReduceScatter : public MpiOperation {
 public:
  MpiReduceScatter(MpiContext context,
                   std::shared_ptr<SharedBuffer> input,
                   std::vector<Span> ranges,
                   std::span<float> output,
                   bool accumulate,
                   NumberType type);

 protected:
  bool step() override;

 private:
  struct Stretch {
    std::vector<std::vector<std::byte>> remote;  // by world rank; empty for ranks of this host
    MpiRequests requests;
  };

  void begin();
  void expect(std::size_t piece);
  void add(std::size_t piece);
  [[nodiscard]] std::size_t num_pieces() const noexcept;
  [[nodiscard]] std::span<float> piece_of_output(std::size_t piece) const noexcept;

  std::shared_ptr<SharedBuffer> input_;
  std::vector<Span> ranges_;
  std::span<float> output_;
  bool accumulate_;
  NumberType type_;
  bool begun_ = false;
  std::size_t added_ = 0;  // pieces
  Stretch stretches_[2];
};

// Into a buffer for all ranks of a host: each shard comes to a host once.
class MpiGatherForAll : public MpiOperation {
 public:
  MpiGatherForAll(MpiContext context,
                  std::span<const std::byte> shard,
                  std::shared_ptr<SharedBuffer> full,
                  Placement placement);

 protected:
  bool step() override;

 private:
  void begin();

  std::span<const std::byte> shard_;
  std::shared_ptr<SharedBuffer> full_;
  Placement placement_;
  bool begun_ = false;
};

// Into a buffer of each rank's own.
class MpiGather : public MpiOperation {
 public:
  MpiGather(MpiContext context,
            std::span<const std::byte> shard,
            BufferPtr full,
            Placement placement);

 protected:
  bool step() override;

 private:
  void begin();

  std::span<const std::byte> shard_;
  BufferPtr full_;
  Placement placement_;
  bool begun_ = false;
};

// Every rank's part r goes to rank r.
class MpiExchange : public MpiOperation {
 public:
  MpiExchange(MpiContext context, std::span<const std::byte> input, std::span<std::byte> output);

 protected:
  bool step() override;

 private:
  void begin();

  std::span<const std::byte> input_;
  std::span<std::byte> output_;
  bool begun_ = false;
};

class MpiAllReduce : public MpiOperation {
 public:
  MpiAllReduce(MpiContext context, std::span<float> values);

 protected:
  bool step() override;

 private:
  [[nodiscard]] std::span<float> piece() const noexcept;
  void begin_piece();
  void add_piece();

  std::span<float> values_;
  std::size_t done_ = 0;  // floats
  bool begun_ = false;
  std::vector<std::vector<float>> gathered_;  // by world rank
};

class MpiBroadcast : public MpiOperation {
 public:
  MpiBroadcast(MpiContext context, std::span<std::byte> bytes, int root);

 protected:
  bool step() override;

 private:
  std::span<std::byte> bytes_;
  int root_;
  bool begun_ = false;
};

class MpiSend : public Operation {
 public:
  MpiSend(MpiContext context, const std::string& label, std::span<const std::byte> bytes, int to);

  bool advance() override { return requests_.all_done(); }

 private:
  MpiContext context_;
  MessageHeader header_;
  MpiRequests requests_;
};

class MpiReceive : public Operation {
 public:
  MpiReceive(MpiContext context, std::string label, std::span<std::byte> bytes, int from);
  bool advance() override;

 private:
  MpiContext context_;
  std::string label_;
  std::span<std::byte> bytes_;
  int from_;
  bool checked_ = false;
  MessageHeader header_;
  MpiRequests header_request_;
  MpiRequests requests_;
};

}  // namespace zeroth::comm
