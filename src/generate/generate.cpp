#include "generate/generate.h"

#include <algorithm>

#include "base/error.h"
#include "models/kv_cache.h"
#include <fmt/format.h>

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

namespace zeroth::generate {
namespace {

// One row on its way: its ids so far and how many it may still get.
struct Row {
  std::vector<std::int64_t> ids;
  std::int64_t prompt_tokens = 0;
  std::int64_t room = 0;
  RandomStream random;
  bool ended = false;

  [[nodiscard]] bool finished() const noexcept { return ended || room == 0; }
};

class Generation {
 public:
  Generation(engine::Engine& engine,
             const std::vector<Prompt>& prompts,
             const GenerateOptions& options)
      : engine_(engine), options_(options), cache_(options.num_layers) {
    for (const Prompt& prompt : prompts) {
      const auto tokens = static_cast<std::int64_t>(prompt.ids.size());
      rows_.push_back(
          {.ids = prompt.ids,
           .prompt_tokens = tokens,
           .room = room_for(tokens, options),
           .random = RandomStream(options.seed, static_cast<std::uint64_t>(prompt.row))});
      active_.push_back(rows_.size() - 1);
    }
  }

  std::vector<Answer> run() {
    at::Tensor ids = padded_prompts();
    while (!active_.empty()) {
      choose_tokens(last_logits(ids));
      drop_finished();
      ids = last_tokens();
    }
    std::vector<Answer> answers;
    for (const Row& row : rows_) {
      answers.push_back(
          {.ids = {row.ids.begin() + row.prompt_tokens, row.ids.end()}, .ended = row.ended});
    }
    return answers;
  }

 private:
  at::Tensor padded_prompts() {
    std::int64_t longest = 0;
    for (const Row& row : rows_) {
      longest = std::max(longest, row.prompt_tokens);
    }
    at::Tensor ids =
        at::full({static_cast<std::int64_t>(rows_.size()), longest}, options_.pad_id, at::kLong);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::int64_t padding = longest - rows_[i].prompt_tokens;
      std::copy(rows_[i].ids.begin(),
                rows_[i].ids.end(),
                ids.data_ptr<std::int64_t>() + static_cast<std::int64_t>(i) * longest + padding);
      padding_.push_back(padding);
    }
    return ids;
  }

  at::Tensor last_logits(const at::Tensor& ids) {
    const models::TokenBatch batch{.ids_BT = ids, .left_padding = padding_};
    const at::Tensor logits =
        engine_.infer({.batch = batch, .cache = &cache_, .last_position = true});
    cache_.advance(ids.size(1));
    return logits.select(1, 0).to(at::kFloat).contiguous();
  }

  void choose_tokens(const at::Tensor& logits_BV) {
    const auto vocabulary = static_cast<std::size_t>(logits_BV.size(1));
    for (std::size_t i = 0; i < active_.size(); ++i) {
      Row& row = rows_[active_[i]];
      if (row.finished()) {
        continue;
      }
      const std::span<float> logits(logits_BV.data_ptr<float>() + i * vocabulary, vocabulary);
      const std::int64_t token = next_token(logits, row.ids, options_.sampling, row.random);
      row.ended = options_.end_ids.contains(token);
      if (!row.ended) {
        row.ids.push_back(token);
        --row.room;
      }
    }
  }

  // Finished rows ride along until half of the batch is done; then the rest is gathered.
  void drop_finished() {
    std::vector<std::int64_t> kept;
    for (std::size_t i = 0; i < active_.size(); ++i) {
      if (!rows_[active_[i]].finished()) {
        kept.push_back(static_cast<std::int64_t>(i));
      }
    }
    if (!kept.empty() && kept.size() * 2 > active_.size()) {
      return;
    }
    std::vector<std::size_t> active;
    std::vector<std::int64_t> padding;
    for (const std::int64_t i : kept) {
      active.push_back(active_[static_cast<std::size_t>(i)]);
      padding.push_back(padding_[static_cast<std::size_t>(i)]);
    }
    active_ = std::move(active);
    padding_ = std::move(padding);
    if (!kept.empty()) {
      cache_.select_rows(at::tensor(kept));
    }
  }

  [[nodiscard]] at::Tensor last_tokens() const {
    std::vector<std::int64_t> ids;
    for (const std::size_t row : active_) {
      ids.push_back(rows_[row].ids.back());
    }
    return at::tensor(ids, at::kLong).unsqueeze(1);
  }

  engine::Engine& engine_;
  const GenerateOptions& options_;
  models::KvCache cache_;
  std::vector<Row> rows_;
  std::vector<std::size_t> active_;    // rows of the batch, as indices into rows_
  std::vector<std::int64_t> padding_;  // of the batch's rows
};

}  // namespace

std::int64_t room_for(std::int64_t prompt_tokens, const GenerateOptions& options) {
  std::int64_t room = options.max_positions - prompt_tokens;
  if (room <= 0) {
    throw Error(ErrorKind::kConfig,
                fmt::format("a prompt of {} tokens leaves no room: the model holds {} positions\n"
                            "  Lower cutoff_len, or shorten the prompt.",
                            prompt_tokens,
                            options.max_positions));
  }
  if (options.max_length > 0) {
    if (prompt_tokens >= options.max_length) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("prompt {} >= max_length {}\n  max_length counts prompt and answer "
                              "together: raise it, or give max_new_tokens instead.",
                              prompt_tokens,
                              options.max_length));
    }
    room = std::min(room, options.max_length - prompt_tokens);
  }
  if (options.max_new_tokens > 0 || options.max_length == 0) {
    room = std::min(room, options.max_new_tokens > 0 ? options.max_new_tokens : kDefaultNewTokens);
  }
  return room;
}

std::vector<Answer> generate(engine::Engine& engine,
                             const std::vector<Prompt>& prompts,
                             const GenerateOptions& options) {
  return Generation(engine, prompts, options).run();
}

}  // namespace zeroth::generate
