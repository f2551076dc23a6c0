#include <algorithm>
#include <numeric>

#include "base/file.h"
#include "data/load.h"
#include "data/sampler.h"
#include "data/test_support.h"
#include <gtest/gtest.h>

// Data sets that people use, with tokenizers of real models.
namespace zeroth::data {
namespace {

using test::error_of;
using test::shared_data;

text::Tokenizer stories() {
  return text::Tokenizer::load(shared_data() / "models/stories260K-hf");
}

LoadSettings settings_for(const text::Tokenizer& tokenizer) {
  return {.embedding_rows = std::int64_t{tokenizer.max_id()} + 1};
}

std::string refusal(const std::string& name,
                    const text::Tokenizer& tokenizer,
                    bool skip_bad_rows = false) {
  LoadSettings settings = settings_for(tokenizer);
  settings.skip_bad_rows = skip_bad_rows;
  return error_of(ErrorKind::kData, [&] {
    (void)load_examples({shared_data() / "datasets" / name}, tokenizer, settings);
  });
}

TEST(RealData, AlpacaRowsOfRaschkasBook) {
  NEEDS_SHARED_DATA();
  const auto tokenizer = stories();
  const auto file = shared_data() / "datasets/raschka_instruction-data.json";
  LoadSettings settings = settings_for(tokenizer);
  settings.prompt_template = "alpaca";
  settings.cutoff_len = 128;
  const Dataset dataset = load_examples({file}, tokenizer, settings);
  EXPECT_EQ(dataset.counts.read, 1100);
  EXPECT_EQ(dataset.counts.kept + dataset.counts.dropped_empty + dataset.counts.dropped_unlabelled,
            1100);
  EXPECT_EQ(dataset.counts.kept, static_cast<std::int64_t>(dataset.examples.size()));
  for (const Example& example : dataset.examples) {
    ASSERT_LE(example.input_ids.size(), 128U);
    ASSERT_EQ(example.input_ids[0], tokenizer.bos_id());
    ASSERT_GT(example.num_targets(), 0);
  }
  const auto prompts = load_prompts({file}, tokenizer, settings_for(tokenizer));
  EXPECT_EQ(prompts.size(), 1100U);
  EXPECT_EQ(prompts[2].label, "45 kilometers is 45000 meters.");
}

TEST(RealData, ChinesePoemsKeepTheirText) {
  NEEDS_SHARED_DATA();
  const auto tokenizer = text::Tokenizer::load(shared_data() / "tokenizers/minimind");
  LoadSettings settings = settings_for(tokenizer);
  settings.max_samples = 500;
  const auto file = shared_data() / "datasets/songci_continue_alpaca_5k.json";
  const Dataset dataset = load_examples({file}, tokenizer, settings);
  EXPECT_EQ(dataset.counts.kept, 500);
  EXPECT_EQ(dataset.counts.truncated, 0);
  const Json rows = parse_json(read_file(file, ErrorKind::kData), "songci", ErrorKind::kData);
  for (const std::size_t row : {0U, 17U, 499U}) {
    EXPECT_EQ(tokenizer.decode(dataset.examples[row].input_ids, true),
              rows[row]["instruction"].get<std::string>() + "\n" +
                  rows[row]["input"].get<std::string>() + rows[row]["output"].get<std::string>());
    EXPECT_EQ(dataset.examples[row].labels.back(), tokenizer.eos_id());
  }
}

struct File {
  const char* name;
  std::vector<std::string> columns;
  std::int64_t rows, with_answer;
};

TEST(RealData, EveryRowOfChatsQuestionsAndAnswersIsCounted) {
  NEEDS_SHARED_DATA();
  const auto tokenizer = stories();
  const std::vector<std::string> questions{"prompt=question", "response=answer"};
  for (const File& file :
       {File{"fastchat_dummy_conversation.json", {}, 500, 500},
        File{"xtuner_openai_sft.jsonl", {}, 128, 128},
        File{"gsm8k_train.jsonl", questions, 7473, 7473},
        File{"gsm8k_test.jsonl", questions, 1319, 1319},
        File{"belle_eval_set.json", {"prompt=question", "response=std_answer"}, 1000, 631}}) {
    LoadSettings settings = settings_for(tokenizer);
    settings.cutoff_len = 1 << 20;
    if (!file.columns.empty()) {
      settings.columns = named_columns(file.columns, "dataset_columns");
    }
    const Dataset dataset =
        load_examples({shared_data() / "datasets" / file.name}, tokenizer, settings);
    EXPECT_EQ(dataset.counts.read, file.rows) << file.name;
    EXPECT_EQ(dataset.counts.kept, file.with_answer) << file.name;
    EXPECT_EQ(dataset.counts.dropped_empty, file.rows - file.with_answer) << file.name;
  }
}

TEST(RealData, ColumnsThatNobodyNamedAreToldOf) {
  NEEDS_SHARED_DATA();
  const auto tokenizer = stories();
  EXPECT_HAS(refusal("gsm8k_test.jsonl", tokenizer),
             "--dataset_columns prompt=question,response=answer");
  EXPECT_HAS(refusal("belle_eval_set.json", tokenizer, true), "\"question\", \"std_answer\"");
}

TEST(RealData, ShakespeareIsPackedWithoutLoss) {
  NEEDS_SHARED_DATA();
  const auto tokenizer = stories();
  LoadSettings settings = settings_for(tokenizer);
  settings.stage = Stage::kPretrain;
  settings.cutoff_len = 128;
  const auto file = shared_data() / "text/tinyshakespeare.txt";
  const Dataset dataset = load_examples({file}, tokenizer, settings);
  std::vector<text::TokenId> ids;
  for (const Example& example : dataset.examples) {
    EXPECT_TRUE(example.input_ids.size() == 128 || &example == &dataset.examples.back());
    ids.insert(ids.end(), example.input_ids.begin(), example.input_ids.end());
  }
  EXPECT_EQ(ids.front(), tokenizer.bos_id());
  EXPECT_EQ(static_cast<std::int64_t>(ids.size()), dataset.num_tokens);
  EXPECT_EQ(tokenizer.decode(ids, true), read_file(file, ErrorKind::kData));
}

TEST(RealData, EachRowOfAnEpochReachesOneMicroBatch) {
  NEEDS_SHARED_DATA();
  const auto tokenizer = stories();
  const Dataset dataset = load_examples({shared_data() / "datasets/raschka_instruction-data.json"},
                                        tokenizer,
                                        settings_for(tokenizer));
  Sampler sampler(static_cast<std::int64_t>(dataset.examples.size()), 48, 42, true);
  std::vector<std::int64_t> seen;
  std::int64_t num_targets = 0;
  for (std::int64_t update = 0; update < sampler.updates_per_epoch(); ++update) {
    const auto global_batch = sampler.global_batch(update);
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      for (const auto& rows : cut_into_micro_steps(global_batch, 5, 3, rank)) {
        std::vector<const Example*> examples;
        for (const std::int64_t row : rows) {
          examples.push_back(&dataset.examples[static_cast<std::size_t>(row)]);
        }
        const MicroBatch batch = make_micro_batch(examples, 0);
        seen.insert(seen.end(), batch.rows.begin(), batch.rows.end());
        num_targets += batch.num_targets;
      }
    }
  }
  std::sort(seen.begin(), seen.end());
  std::vector<std::int64_t> all(dataset.examples.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(seen, all);
  EXPECT_EQ(num_targets, dataset.num_targets);
}

}  // namespace
}  // namespace zeroth::data
