#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "data/bad_rows.h"
#include "data/example.h"
#include "data/load.h"

namespace zeroth::data {

// Cuts a stream of documents into rows of equal length. [Note: packing] A document may begin in one
// row and end in the next; rows do not mark where documents meet but by their BOS and EOS. The
// last, shorter piece becomes a row as well if it can hold a target, so that no text is lost.
class Packer {
 public:
  Packer(std::int64_t row_tokens, std::vector<Example>& rows);

  void add(std::span<const text::TokenId> document);
  [[nodiscard]] std::int64_t finish();  // the tokens left over: 1 or 0

 private:
  void close_row();

  std::size_t row_tokens_;
  std::vector<Example>& rows_;
  std::vector<text::TokenId> open_row_;
};

[[nodiscard]] Dataset load_pretrain(const Sources& sources,
                                    const text::Tokenizer& tokenizer,
                                    const LoadSettings& settings);

}  // namespace zeroth::data
