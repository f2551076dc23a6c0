#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "text/new_tokens.h"

namespace zeroth::train {

// A small file beside a result, so that other tools open the folder: the tokenizer's, and
// generation_config.json.
struct Companion {
  std::filesystem::path source;
  std::string content;  // in place of the source's; empty: it is copied as it is

  [[nodiscard]] std::int64_t bytes() const;
};

// tokenizer.json gets `tokens`, where there are some.
[[nodiscard]] std::vector<Companion> companions_of(const std::filesystem::path& model_folder,
                                                   const std::filesystem::path& tokenizer_folder,
                                                   const text::NewTokens& tokens);

// Files that lie in `folder` already are not copied onto themselves. Returns all of them.
std::vector<std::filesystem::path> write_companions(const std::vector<Companion>& companions,
                                                    const std::filesystem::path& folder);

}  // namespace zeroth::train
