#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "generate/sampling.h"

namespace zeroth::generate {

struct GenerateOptions {
  SamplingOptions sampling;
  std::set<std::int64_t> end_ids;   // generation of a row stops at any of them
  std::int64_t pad_id = 0;          // stands in front of shorter prompts; never seen by the model
  std::int64_t max_new_tokens = 0;  // given, else 0
  std::int64_t max_length = 0;      // prompt and answer together: given, else 0
  std::int64_t max_positions = 0;   // what the model can hold
  std::int64_t num_layers = 0;
  std::uint64_t seed = 42;
};

// New tokens for a prompt when neither limit is given.
inline constexpr std::int64_t kDefaultNewTokens = 1024;

struct Prompt {
  std::int64_t row = 0;  // decides the random numbers of sampling, whatever batch the row stands in
  std::vector<std::int64_t> ids;
};

struct Answer {
  std::vector<std::int64_t> ids;  // without the end token
  bool ended = false;             // by an end token; false: a limit was reached
};

// How many tokens the answer to a prompt may get. kConfig where a limit leaves no room for one:
// asked for all prompts before anything long begins.
[[nodiscard]] std::int64_t room_for(std::int64_t prompt_tokens, const GenerateOptions& options);

// Continues all prompts together with a KV cache, padded on the left; each answer is what the
// prompt alone would give.
[[nodiscard]] std::vector<Answer> generate(engine::Engine& engine,
                                           const std::vector<Prompt>& prompts,
                                           const GenerateOptions& options);

}  // namespace zeroth::generate
