#include "comm/gather_texts.h"

#include <algorithm>

namespace zeroth::comm {

std::vector<std::string> gather_texts(Communicator& comm,
                                      const std::string& label,
                                      const std::string& text) {
  const std::vector<double> lengths = comm.gather_values(
      label + " (lengths)", std::vector<double>{static_cast<double>(text.size())});
  const auto longest = static_cast<std::size_t>(*std::max_element(lengths.begin(), lengths.end()));
  std::string padded = text;
  padded.resize(longest);
  const BufferPtr all = make_private_buffer(longest * lengths.size());
  if (longest > 0) {
    comm.all_gather(label, std::as_bytes(std::span<const char>(padded)), all).wait();
  }
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    const auto* const begin = reinterpret_cast<const char*>(all->data()) + rank * longest;
    texts.emplace_back(begin, static_cast<std::size_t>(lengths[rank]));
  }
  return texts;
}

}  // namespace zeroth::comm
