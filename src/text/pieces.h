#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/regex.h"

namespace zeroth::text {

// A text and the pieces that it is cut into so far, in order. Cutting moves borders and copies
// nothing.
class Pieces {
 public:
  // `at_start`: the text stands at the very start of what is encoded.
  Pieces(std::string text, bool at_start);

  [[nodiscard]] const std::vector<Span>& spans() const noexcept { return spans_; }

  [[nodiscard]] std::string_view operator[](const Span& span) const noexcept {
    return std::string_view(text_).substr(span.begin, span.end - span.begin);
  }

  // cut(piece, parts) fills `parts` with stretches of `piece`, in order; empty ones are dropped.
  template <typename Cut>
  void split(Cut cut) {
    std::vector<Span> finer;
    finer.reserve(spans_.size());
    std::vector<Span> parts;
    for (const Span& span : spans_) {
      parts.clear();
      cut((*this)[span], parts);
      append_parts(finer, span.begin, parts);
    }
    spans_ = std::move(finer);
  }

  // rewrite(to, piece, at_start) appends the piece's new text to `to`.
  template <typename Rewrite>
  void rewrite(Rewrite rewrite) {
    std::string text;
    text.reserve(text_.size() + text_.size() / 4);
    for (Span& span : spans_) {
      const std::size_t begin = text.size();
      rewrite(text, (*this)[span], at_start_ && span.begin == 0);
      span = {begin, text.size()};
    }
    text_ = std::move(text);
  }

 private:
  static void append_parts(std::vector<Span>& to,
                           std::size_t offset,
                           const std::vector<Span>& parts);

  std::string text_;
  std::vector<Span> spans_;
  bool at_start_;
};

}  // namespace zeroth::text
