#include "comm/mpi/mpi_operations.h"

#include <algorithm>
#include <utility>

#include "comm/sum.h"
#include <fmt/format.h>

namespace zeroth::comm {
namespace {

constexpr int kAgreeTag = 1;
constexpr int kDataTag = 2;
constexpr int kHeaderTag = 3;
constexpr int kMessageTag = 4;
constexpr std::size_t kPieceNumbers = std::size_t{256} << 10;

std::size_t as_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

template <typename T>
std::span<std::byte> raw(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

template <typename T>
std::span<T> piece_of(std::span<T> range, std::size_t piece, std::size_t piece_size) {
  const std::size_t begin = piece * piece_size;
  return range.subspan(begin, std::min(piece_size, range.size() - begin));
}

std::size_t pieces_of(std::size_t numel) {
  return (numel + kPieceNumbers - 1) / kPieceNumbers;
}

// Beyond the ranks of the segment, so that none of them is taken for the other side.
int outside(const MpiContext& context, int world_rank) {
  return context.queue->size() + world_rank;
}

}  // namespace

MpiOperation::MpiOperation(MpiContext context) : context_(std::move(context)) {
  polls = true;
}

bool MpiOperation::advance() {
  return agree() && step();
}

void MpiOperation::send(std::span<const std::byte> bytes, int to) {
  requests_.send(bytes, to, kDataTag, session().collectives());
}

void MpiOperation::receive(std::span<std::byte> bytes, int from) {
  requests_.receive(bytes, from, kDataTag, session().collectives());
}

// The leaders of the hosts tell each other what their ranks called.
bool MpiOperation::agree() {
  if (phase_ == Phase::kAgreed || context_.queue->rank() != 0) {
    return true;
  }
  const int own = session().host_of(session().rank());
  if (phase_ == Phase::kBegin) {
    const CallRecord& record = context_.queue->record(0, *this);
    told_.resize(as_size(session().num_hosts()));
    told_[as_size(own)] = {.hash = record.hash, .text = record.description};
    for (int host = 0; host < session().num_hosts(); ++host) {
      if (host != own) {
        const int leader = session().ranks_of(host).front();
        requests_.receive(raw(told_[as_size(host)]), leader, kAgreeTag, session().collectives());
        requests_.send(raw(told_[as_size(own)]), leader, kAgreeTag, session().collectives());
      }
    }
    phase_ = Phase::kAgreeing;
  }
  if (!requests_.all_done()) {
    return false;
  }
  compare();
  phase_ = Phase::kAgreed;
  return true;
}

void MpiOperation::compare() const {
  for (int host = 1; host < session().num_hosts(); ++host) {
    if (told_[as_size(host)].hash != told_[0].hash) {
      throw Error(ErrorKind::kCommunication,
                  fmt::format("ranks of different hosts differ in an operation: rank {} called {}, "
                              "rank {} called {}\n  All ranks must call the same operations with "
                              "the same sizes in the same order.",
                              session().ranks_of(0).front(),
                              told_[0].text.data(),
                              session().ranks_of(host).front(),
                              told_[as_size(host)].text.data()));
    }
  }
}

MpiReduceScatter::MpiReduceScatter(MpiContext context,
                                   std::shared_ptr<SharedBuffer> input,
                                   std::vector<Span> ranges,
                                   std::span<float> output,
                                   bool accumulate,
                                   NumberType type)
    : MpiOperation(std::move(context)),
      input_(std::move(input)),
      ranges_(std::move(ranges)),
      output_(output),
      accumulate_(accumulate),
      type_(type) {
  peers_read_mine = true;
}

std::size_t MpiReduceScatter::num_pieces() const noexcept {
  return pieces_of(output_.size());
}

std::span<float> MpiReduceScatter::piece_of_output(std::size_t piece) const noexcept {
  return piece_of(output_, piece, kPieceNumbers);
}

void MpiReduceScatter::begin() {
  const std::size_t width = bytes_of(type_);
  const std::span<const std::byte> mine(input_->data(), as_size(input_->bytes()));
  for (int r = 0; r < session().size(); ++r) {
    const Span& range = ranges_[as_size(r)];
    const std::size_t count = as_size(range.end - range.begin);
    const auto theirs = mine.subspan(as_size(range.begin) * width, count * width);
    for (std::size_t p = 0; !session().is_local(r) && p < pieces_of(count); ++p) {
      send(piece_of(theirs, p, kPieceNumbers * width), r);
    }
  }
  for (std::size_t piece = 0; piece < std::min<std::size_t>(2, num_pieces()); ++piece) {
    expect(piece);
  }
  begun_ = true;
}

void MpiReduceScatter::expect(std::size_t piece) {
  Stretch& stretch = stretches_[piece % 2];
  stretch.remote.resize(as_size(session().size()));
  for (int r = 0; r < session().size(); ++r) {
    if (!session().is_local(r)) {
      std::vector<std::byte>& room = stretch.remote[as_size(r)];
      room.resize(piece_of_output(piece).size() * bytes_of(type_));
      stretch.requests.receive(room, r, kDataTag, session().collectives());
    }
  }
}

void MpiReduceScatter::add(std::size_t piece) {
  const std::size_t offset =
      (as_size(ranges_[as_size(session().rank())].begin) + piece * kPieceNumbers) * bytes_of(type_);
  std::vector<const std::byte*> sources;
  int local_rank = 0;
  for (int r = 0; r < session().size(); ++r) {
    sources.push_back(session().is_local(r) ? input_->part(local_rank++) + offset
                                            : stretches_[piece % 2].remote[as_size(r)].data());
  }
  sum_in_order(sources, piece_of_output(piece), accumulate_, type_);
}

bool MpiReduceScatter::step() {
  if (!begun_) {
    begin();
  }
  while (added_ < num_pieces()) {
    if (!stretches_[added_ % 2].requests.all_done()) {
      (void)requests().all_done();  // lets MPI work on what is sent
      return false;
    }
    add(added_);
    if (added_ + 2 < num_pieces()) {
      expect(added_ + 2);
    }
    ++added_;
  }
  return requests().all_done();
}

MpiGatherForAll::MpiGatherForAll(MpiContext context,
                                 std::span<const std::byte> shard,
                                 std::shared_ptr<SharedBuffer> full,
                                 Placement placement)
    : MpiOperation(std::move(context)),
      shard_(shard),
      full_(std::move(full)),
      placement_(placement) {
  peers_read_mine = true;
}

void MpiGatherForAll::begin() {
  begun_ = true;
  const int me = session().rank();
  const auto receives = [this](int host, int shard_rank) {
    const std::vector<int>& ranks = session().ranks_of(host);
    return ranks[as_size(shard_rank) % ranks.size()];
  };
  const auto place = [this](int r) {
    return std::span(full_->data() + as_size(r) * placement_.stride + placement_.offset,
                     shard_.size());
  };
  const int own_host = session().host_of(me);
  for (int r = 0; r < session().size(); ++r) {
    if (!session().is_local(r) && receives(own_host, r) == me) {
      receive(place(r), r);
    }
  }
  for (int host = 0; host < session().num_hosts(); ++host) {
    if (host != own_host) {
      send(shard_, receives(host, me));
    }
  }
  copy_bytes(place(me).data(), shard_.data(), shard_.size(), shard_.size());
}

bool MpiGatherForAll::step() {
  if (!begun_) {
    begin();
  }
  return requests().all_done();
}

MpiGather::MpiGather(MpiContext context,
                     std::span<const std::byte> shard,
                     BufferPtr full,
                     Placement placement)
    : MpiOperation(std::move(context)),
      shard_(shard),
      full_(std::move(full)),
      placement_(placement) {
}

void MpiGather::begin() {
  begun_ = true;
  const auto place = [this](int r) {
    return std::span(full_->data() + as_size(r) * placement_.stride + placement_.offset,
                     shard_.size());
  };
  const int me = session().rank();
  for (int r = 0; r < session().size(); ++r) {
    if (r != me) {
      receive(place(r), r);
    }
  }
  for (int r = 0; r < session().size(); ++r) {
    if (r != me) {
      send(shard_, r);
    }
  }
  copy_bytes(place(me).data(), shard_.data(), shard_.size(), as_size(full_->bytes()));
}

bool MpiGather::step() {
  if (!begun_) {
    begin();
  }
  return requests().all_done();
}

MpiExchange::MpiExchange(MpiContext context,
                         std::span<const std::byte> input,
                         std::span<std::byte> output)
    : MpiOperation(std::move(context)), input_(input), output_(output) {
}

void MpiExchange::begin() {
  begun_ = true;
  const std::size_t part = output_.size() / as_size(session().size());
  const auto to = [&](int r) { return input_.subspan(as_size(r) * part, part); };
  const auto from = [&](int r) { return output_.subspan(as_size(r) * part, part); };
  const int me = session().rank();
  for (int r = 0; r < session().size(); ++r) {
    if (r != me) {
      receive(from(r), r);
    }
  }
  for (int r = 0; r < session().size(); ++r) {
    if (r != me) {
      send(to(r), r);
    }
  }
  copy_bytes(from(me).data(), to(me).data(), part, output_.size());
}

bool MpiExchange::step() {
  if (!begun_) {
    begin();
  }
  return requests().all_done();
}

MpiAllReduce::MpiAllReduce(MpiContext context, std::span<float> values)
    : MpiOperation(std::move(context)), values_(values) {
}

std::span<float> MpiAllReduce::piece() const noexcept {
  return values_.subspan(done_, std::min(kPieceNumbers, values_.size() - done_));
}

void MpiAllReduce::begin_piece() {
  gathered_.resize(as_size(session().size()));
  for (int r = 0; r < session().size(); ++r) {
    std::vector<float>& room = gathered_[as_size(r)];
    room.resize(piece().size());
    if (r != session().rank()) {
      receive(std::as_writable_bytes(std::span(room)), r);
    }
  }
  std::vector<float>& mine = gathered_[as_size(session().rank())];
  std::copy(piece().begin(), piece().end(), mine.begin());
  for (int r = 0; r < session().size(); ++r) {
    if (r != session().rank()) {
      send(std::as_bytes(std::span(mine)), r);
    }
  }
}

void MpiAllReduce::add_piece() {
  std::vector<const std::byte*> sources;
  for (const std::vector<float>& values : gathered_) {
    sources.push_back(reinterpret_cast<const std::byte*>(values.data()));
  }
  sum_in_order(sources, piece(), false);
  done_ += piece().size();
}

bool MpiAllReduce::step() {
  while (done_ < values_.size()) {
    if (!begun_) {
      begin_piece();
      begun_ = true;
    }
    if (!requests().all_done()) {
      return false;
    }
    add_piece();
    begun_ = false;
  }
  return true;
}

MpiBroadcast::MpiBroadcast(MpiContext context, std::span<std::byte> bytes, int root)
    : MpiOperation(std::move(context)), bytes_(bytes), root_(root) {
}

bool MpiBroadcast::step() {
  if (!begun_) {
    begun_ = true;
    requests().broadcast(bytes_, root_, session().collectives());
  }
  return requests().all_done();
}

MpiSend::MpiSend(MpiContext context,
                 const std::string& label,
                 std::span<const std::byte> bytes,
                 int to)
    : context_(std::move(context)), header_(make_header(label, bytes.size())) {
  polls = true;
  peer = outside(context_, to);
  const MPI_Comm communicator = context_.session->messages();
  requests_.send(raw(header_), to, kHeaderTag, communicator);
  requests_.send(bytes, to, kMessageTag, communicator);
}

MpiReceive::MpiReceive(MpiContext context, std::string label, std::span<std::byte> bytes, int from)
    : context_(std::move(context)), label_(std::move(label)), bytes_(bytes), from_(from) {
  polls = true;
  peer = outside(context_, from);
  channel = 1;
  const MPI_Comm communicator = context_.session->messages();
  header_request_.receive(raw(header_), from, kHeaderTag, communicator);
  requests_.receive(bytes, from, kMessageTag, communicator);
}

bool MpiReceive::advance() {
  if (!checked_) {
    if (!header_request_.all_done()) {
      return false;
    }
    check_header(header_, label_, bytes_.size(), {from_, context_.session->rank()});
    checked_ = true;
  }
  return requests_.all_done();
}

}  // namespace zeroth::comm
