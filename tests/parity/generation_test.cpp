#include "base/error.h"
#include "generate/generate.h"
#include "models/kv_cache.h"
#include "parity/support.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// Generation with a KV cache and left padding against Transformers' greedy generate and against
// single rows.
namespace zeroth::parity {
namespace {

using generate::Answer;
using generate::GenerateOptions;
using generate::Prompt;

class Generation : public testing::Test {
 protected:
  Generation() {
    TraineeOptions options{.folder = golden() / "transformers/llama3"};
    options.model.trainable = false;
    trainee_ = make_trainee(std::move(options));
  }

  static GenerateOptions greedy(std::int64_t max_new_tokens) {
    return {.max_new_tokens = max_new_tokens, .max_positions = 256, .num_layers = 4};
  }

  // Two prompts of lengths 3 and 6; the second truly ends with the padding's id.
  static std::vector<Prompt> two_prompts() {
    return {{.row = 0, .ids = {11, 45, 200}}, {.row = 1, .ids = {7, 300, 42, 9, 18, 0}}};
  }

  Trainee trainee_;
};

TEST_F(Generation, GreedyTokensOfTransformers) {
  const formats::SafetensorsFile expected(golden() / "transformers/llama3/generate.safetensors");
  const at::Tensor prompt = tensor(expected, "prompt")[0];
  const at::Tensor tokens = tensor(expected, "tokens")[0];
  const auto* ids = prompt.data_ptr<std::int64_t>();
  const auto answers =
      generate::generate(*trainee_.engine, {{.ids = {ids, ids + prompt.numel()}}}, greedy(32));
  // `tokens` holds the new ids, or prompt and new ids.
  const at::Tensor fresh = tokens.narrow(0, tokens.numel() - 32, 32);
  const auto* fresh_ids = fresh.data_ptr<std::int64_t>();
  EXPECT_EQ(answers.front().ids, std::vector<std::int64_t>(fresh_ids, fresh_ids + 32));
  EXPECT_FALSE(answers.front().ended);
}

TEST_F(Generation, G03_BatchedAnswersEqualThoseOfSingleRows) {
  const std::vector<Prompt> prompts = two_prompts();
  const auto together = generate::generate(*trainee_.engine, prompts, greedy(24));
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(together[i].ids,
              generate::generate(*trainee_.engine, {prompts[i]}, greedy(24)).front().ids);
  }
}

TEST_F(Generation, G04_LogitsOfAPaddedPromptEqualTheUnpaddedOnes) {
  const at::Tensor alone =
      logits(*trainee_.engine, at::tensor({11, 45, 200}, at::kLong).unsqueeze(0));
  const models::TokenBatch padded{
      .ids_BT = at::tensor({0, 0, 0, 11, 45, 200}, at::kLong).unsqueeze(0), .left_padding = {3}};
  models::KvCache cache(4);
  const at::Tensor value =
      trainee_.engine->infer({.batch = padded, .cache = &cache, .last_position = true});
  EXPECT_LE(worst_excess(value[0][0], alone[0][2], 1e-5, 1e-5), 1.0);
}

TEST_F(Generation, CachedLogitsEqualThoseOfAWholeForward) {
  const at::Tensor ids = at::tensor({7, 300, 42, 9, 18, 77}, at::kLong).unsqueeze(0);
  const at::Tensor whole = logits(*trainee_.engine, ids);
  models::KvCache cache(4);
  for (std::int64_t t = 0; t < 6; ++t) {
    const models::TokenBatch one{.ids_BT = ids.narrow(1, t, 1).contiguous()};
    const at::Tensor value =
        trainee_.engine->infer({.batch = one, .cache = &cache, .last_position = true});
    cache.advance(1);
    EXPECT_LE(worst_excess(value[0][0], whole[0][t], 2e-5, 1e-5), 1.0) << "position " << t;
  }
}

TEST_F(Generation, G06_EveryEndTokenEndsAnAnswer) {
  const auto free =
      generate::generate(*trainee_.engine, {two_prompts()[0]}, greedy(12)).front().ids;
  for (const std::int64_t end : {free[2], free[5]}) {
    GenerateOptions options = greedy(12);
    options.end_ids = {500, end};
    const Answer answer = generate::generate(*trainee_.engine, {two_prompts()[0]}, options).front();
    const auto first = std::find(free.begin(), free.end(), end);
    EXPECT_EQ(answer.ids, std::vector<std::int64_t>(free.begin(), first));
    EXPECT_TRUE(answer.ended);
  }
}

TEST_F(Generation, G07_MaxLengthCountsThePromptAndMustLeaveRoom) {
  GenerateOptions options = greedy(0);
  options.max_length = 10;
  EXPECT_EQ(generate::generate(*trainee_.engine, {two_prompts()[0]}, options).front().ids.size(),
            7U);
  options.max_length = 6;
  try {
    (void)generate::generate(*trainee_.engine, {two_prompts()[1]}, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(std::string(error.what()).find("prompt 6 >= max_length 6"), std::string::npos)
        << error.what();
  }
}

TEST_F(Generation, RowsThatEndEarlyLeaveTheOthersAsTheyWere) {
  std::vector<Prompt> prompts;
  for (std::int64_t row = 0; row < 6; ++row) {
    prompts.push_back({.row = row, .ids = {11 + row, 45, 200 - row}});
  }
  GenerateOptions options = greedy(20);
  for (std::int64_t id = 0; id < 512; id += 9) {
    options.end_ids.insert(id);
  }
  const auto together = generate::generate(*trainee_.engine, prompts, options);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const Answer alone = generate::generate(*trainee_.engine, {prompts[i]}, options).front();
    EXPECT_EQ(together[i].ids, alone.ids);
    EXPECT_EQ(together[i].ended, alone.ended);
  }
}

TEST_F(Generation, SamplingDependsOnTheSeedAndTheRowNotOnTheBatch) {
  GenerateOptions options = greedy(16);
  options.sampling = {.do_sample = true, .temperature = 1.0, .top_k = 50, .top_p = 0.95};
  const auto together = generate::generate(*trainee_.engine, two_prompts(), options);
  EXPECT_EQ(together[1].ids,
            generate::generate(*trainee_.engine, {two_prompts()[1]}, options).front().ids);
  options.seed = 7;
  EXPECT_NE(together[1].ids,
            generate::generate(*trainee_.engine, {two_prompts()[1]}, options).front().ids);
}

TEST(Sampling, FollowsTemperatureTopKAndTopP) {
  RandomStream random(1, 0);
  const std::vector<float> row{2.0F, 1.0F, 0.0F, -1.0F};
  std::vector<int> counts(4);
  for (int i = 0; i < 4000; ++i) {
    std::vector<float> logits = row;
    ++counts[static_cast<std::size_t>(generate::next_token(
        logits, {}, {.do_sample = true, .temperature = 0.5, .top_k = 3}, random))];
  }
  // exp(4), exp(2), exp(0) of their sum; the fourth is cut by top_k.
  EXPECT_NEAR(counts[0] / 4000.0, 0.867, 0.03);
  EXPECT_NEAR(counts[1] / 4000.0, 0.117, 0.03);
  EXPECT_EQ(counts[3], 0);
  std::vector<float> logits = row;
  EXPECT_EQ(generate::next_token(logits, {}, {.do_sample = true, .top_p = 0.5}, random), 0);
}

TEST(Sampling, TheRepetitionPenaltyWorksOnBothSigns) {
  RandomStream random(1, 0);
  std::vector<float> logits{2.0F, 1.5F, -0.1F};
  const std::vector<std::int64_t> seen{0, 2};
  EXPECT_EQ(generate::next_token(logits, seen, {.repetition_penalty = 2.0}, random), 1);
  EXPECT_FLOAT_EQ(logits[0], 1.0F);
  EXPECT_FLOAT_EQ(logits[2], -0.2F);
}

TEST(TinyRandomLlama2, GreedyContinuationsOfTransformers) {
  if (!std::filesystem::exists(shared_data())) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  TraineeOptions options{.folder = shared_data() / "models/tiny-random-llama-2"};
  options.model.trainable = false;
  Trainee trainee = make_trainee(std::move(options));
  const GenerateOptions greedy{.max_new_tokens = 4, .max_positions = 256, .num_layers = 2};
  EXPECT_EQ(generate::generate(*trainee.engine, {{.ids = {1}}}, greedy).front().ids,
            (std::vector<std::int64_t>{1031, 2185, 688, 2844}));
  EXPECT_EQ(generate::generate(*trainee.engine, {{.ids = {1, 42}}}, greedy).front().ids,
            (std::vector<std::int64_t>{2049, 500, 733, 2962}));
}

}  // namespace
}  // namespace zeroth::parity
