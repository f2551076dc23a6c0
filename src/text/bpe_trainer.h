#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace zeroth::text {

struct TrainerSettings {
  std::int64_t vocab_size = 32000;  // special tokens and the 256 bytes included
  std::string end_token = "<|endoftext|>";
  std::string pad_token = "<|pad|>";
  std::vector<std::string> more_special_tokens;
  std::int64_t min_count = 2;            // pairs that are rarer are not merged
  std::int64_t model_max_length = 2048;  // written to tokenizer_config.json
};

struct TrainedTokenizer {
  std::int64_t vocab_size =
      0;  // below the one asked for where the texts have no more pairs to merge
  std::int64_t num_merges = 0;
  std::vector<std::filesystem::path> files;
};

// Learns a byte-level BPE from `texts` and writes it to `folder`: tokenizer.json,
// tokenizer_config.json and special_tokens_map.json, which Tokenizer and Hugging Face tokenizers
// load. Any UTF-8 round-trips, as all 256 bytes are tokens. The same texts and settings give the
// same bytes. kConfig for a vocab_size without room for special tokens and bytes, kData for a text
// that is not UTF-8.
TrainedTokenizer train_byte_level_bpe(std::span<const std::string> texts,
                                      const TrainerSettings& settings,
                                      const std::filesystem::path& folder);

}  // namespace zeroth::text
