#include "text/pieces.h"

namespace zeroth::text {

Pieces::Pieces(std::string text, bool at_start) : text_(std::move(text)), at_start_(at_start) {
  if (!text_.empty()) {
    spans_.push_back({0, text_.size()});
  }
}

void Pieces::append_parts(std::vector<Span>& to,
                          std::size_t offset,
                          const std::vector<Span>& parts) {
  for (const Span& part : parts) {
    if (part.end > part.begin) {
      to.push_back({offset + part.begin, offset + part.end});
    }
  }
}

}  // namespace zeroth::text
