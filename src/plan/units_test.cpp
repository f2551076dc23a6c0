#include "plan/units.h"

#include "plan/test_support.h"
#include <gtest/gtest.h>

// What trains and what does not, for every kind of training.
namespace zeroth::plan {
namespace {

constexpr TestShape kShape{};
constexpr std::int64_t kMatrix = 2048 * 256;  // embedding or head
constexpr std::int64_t kQuery = 256 * 256;

ModelSize size_with(const shapes::LoraSettings& lora, bool tied = false) {
  TestShape shape = kShape;
  shape.tied = tied;
  PlanInput input = input_for(shape);
  input.lora = lora;
  return size_of(input);
}

TEST(Size, RanksAreEachModulesOwn) {
  const ModelSize size = size_with({.rank = 8,
                                    .target_modules = {"q_proj", "down_proj"},
                                    .layers_to_transform = {0, 1},
                                    .rank_pattern = {{"down_proj", 2}}});
  EXPECT_EQ(size.trainable, 2 * (8 * (256 + 256) + 2 * (768 + 256)));
  EXPECT_EQ(size.units[1].ranks, 10);
  EXPECT_EQ(size.units[3].trainable, 0);
}

TEST(Size, DoraHasALengthForEachOutput) {
  const ModelSize plain = size_with({.rank = 4, .target_modules = {"q_proj"}});
  const ModelSize dora = size_with({.rank = 4, .target_modules = {"q_proj"}, .use_dora = true});
  EXPECT_EQ(dora.trainable - plain.trainable, 4 * 256);
  EXPECT_EQ(dora.units[1].dora_outputs, 256);
}

TEST(Size, ModulesInFullAreNotFrozenAndATiedHeadBecomesAMatrix) {
  const shapes::LoraSettings plain{.rank = 4, .target_modules = {"q_proj"}};
  shapes::LoraSettings whole = plain;
  whole.modules_to_save = {"lm_head"};
  const ModelSize before = size_with(plain);
  const ModelSize after = size_with(whole);
  EXPECT_EQ(after.trainable - before.trainable, kMatrix);
  EXPECT_EQ(before.frozen - after.frozen, kMatrix);
  EXPECT_TRUE(after.units.back().head_trains);
  const ModelSize tied = size_with(whole, /*tied=*/true);
  EXPECT_EQ(tied.trainable, after.trainable);
  EXPECT_EQ(tied.frozen, after.frozen);
  EXPECT_FALSE(tied.borrows);
}

TEST(Size, TheEndsHaveAdaptersWhereTheyAreNamed) {
  const ModelSize size = size_with({.rank = 4, .target_modules = {"embed_tokens", "lm_head"}});
  EXPECT_EQ(size.trainable, 2 * 4 * (2048 + 256));
  EXPECT_FALSE(size.units.back().head_trains);
}

TEST(Size, FreezeTuningTrainsSomeBlocks) {
  PlanInput input = input_for(kShape);
  const std::int64_t all = size_of(input).trainable;
  input.freeze = shapes::FreezeSettings{.layers = 1, .modules = {"self_attn"}};
  const ModelSize size = size_of(input);
  EXPECT_EQ(size.trainable, 2 * kQuery + 2 * kQuery / 2);
  EXPECT_EQ(size.trainable + size.frozen, all);
  EXPECT_EQ(size.units[1].trainable, 0);
}

}  // namespace
}  // namespace zeroth::plan
