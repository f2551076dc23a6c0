#include "data/truncation.h"

#include "data/encode.h"
#include <gtest/gtest.h>

namespace zeroth::data {
namespace {

using Turn = text::PromptTemplate::EncodedTurn;

TEST(Truncation, WhatFitsStays) {
  EXPECT_EQ(fit_turn({.prompt = 6, .answer = 4}, 10), (TurnLengths{.prompt = 6, .answer = 4}));
  EXPECT_EQ(fit_turn({.prompt = 1, .answer = 2}, 100), (TurnLengths{.prompt = 1, .answer = 2}));
}

TEST(Truncation, CutsByLlamaFactorysRule) {
  EXPECT_EQ(fit_turn({.prompt = 10, .answer = 3}, 8), (TurnLengths{.prompt = 5, .answer = 3}));
  EXPECT_EQ(fit_turn({.prompt = 3, .answer = 10}, 8), (TurnLengths{.prompt = 3, .answer = 5}));
  EXPECT_EQ(fit_turn({.prompt = 10, .answer = 6}, 8), (TurnLengths{.prompt = 5, .answer = 3}));
  EXPECT_EQ(fit_turn({.prompt = 100, .answer = 4}, 8), (TurnLengths{.prompt = 8, .answer = 0}));
  EXPECT_EQ(fit_turn({.prompt = 5, .answer = 5}, 0), (TurnLengths{}));
}

TEST(Truncation, NeverExceedsTheBudgetAndNeverGrows) {
  for (std::int64_t prompt = 0; prompt < 24; ++prompt) {
    for (std::int64_t answer = 0; answer < 24; ++answer) {
      for (std::int64_t budget = 0; budget < 50; ++budget) {
        const TurnLengths kept = fit_turn({.prompt = prompt, .answer = answer}, budget);
        EXPECT_LE(kept.prompt, prompt);
        EXPECT_LE(kept.answer, answer);
        EXPECT_GE(kept.prompt, 0);
        EXPECT_GE(kept.answer, 0);
        EXPECT_EQ(kept.prompt + kept.answer, std::min(budget, prompt + answer));
      }
    }
  }
}

TEST(Truncation, LaterTurnsGetWhatIsLeft) {
  const std::vector<Turn> turns{{.prompt = {1, 2}, .answer = {3, 4}, .num_answer_targets = 2},
                                {.prompt = {5, 6, 7}, .answer = {8, 9}, .num_answer_targets = 2},
                                {.prompt = {10}, .answer = {11}, .num_answer_targets = 1}};
  std::int64_t tokens_cut = 0;
  const Example example = join_turns(turns, 7, Trains::kAnswers, tokens_cut);
  EXPECT_EQ(example.input_ids, (std::vector<text::TokenId>{1, 2, 3, 4, 5, 6, 8}));
  EXPECT_EQ(example.labels, (std::vector<text::TokenId>{-100, -100, 3, 4, -100, -100, 8}));
  EXPECT_EQ(tokens_cut, 4);
}

// Where the last answer alone is trained, it has the first claim on the room.
TEST(Truncation, EarlierTurnsGetWhatTheLastOneLeaves) {
  const std::vector<Turn> turns{{.prompt = {1, 2}, .answer = {3, 4}, .num_answer_targets = 2},
                                {.prompt = {5, 6, 7}, .answer = {8, 9}, .num_answer_targets = 2},
                                {.prompt = {10}, .answer = {11}, .num_answer_targets = 1}};
  std::int64_t tokens_cut = 0;
  const Example whole = join_turns(turns, 20, Trains::kLastAnswer, tokens_cut);
  EXPECT_EQ(whole.input_ids.size(), 11U);
  EXPECT_EQ(whole.num_targets(), 1);
  EXPECT_EQ(whole.labels.back(), 11);
  EXPECT_EQ(tokens_cut, 0);
  const Example cut = join_turns(turns, 7, Trains::kLastAnswer, tokens_cut);
  EXPECT_EQ(cut.input_ids, (std::vector<text::TokenId>{5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(cut.num_targets(), 1);
  EXPECT_EQ(tokens_cut, 4);
}

// What a format writes after the end token is read, not trained.
TEST(Truncation, OnlyTheAnswersTargetsAreLabelled) {
  const std::vector<Turn> turns{{.prompt = {1}, .answer = {2, 3, 4}, .num_answer_targets = 2}};
  std::int64_t tokens_cut = 0;
  EXPECT_EQ(join_turns(turns, 10, Trains::kAnswers, tokens_cut).labels,
            (std::vector<text::TokenId>{-100, 2, 3, -100}));
  EXPECT_EQ(join_turns(turns, 10, Trains::kEverything, tokens_cut).labels,
            (std::vector<text::TokenId>{1, 2, 3, -100}));
  EXPECT_EQ(tokens_cut, 0);
}

}  // namespace
}  // namespace zeroth::data
