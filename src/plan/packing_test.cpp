#include "plan/packing.h"

#include "plan/test_support.h"
#include <gtest/gtest.h>

namespace zeroth::plan {
namespace {

// LoRA on a model whose sizes are whole blocks: packing costs what its weights do.
PlanInput lora_input() {
  PlanInput input = input_for({});
  input.lora = shapes::LoraSettings{.rank = 8, .alpha = 16};
  input.share_frozen = true;
  input.chooses_packed = true;
  input.packed = PackedFor::kBoth;
  return input;
}

Bytes need_with(PlanInput input, PackedFor packed) {
  input.packed = packed;
  return needs_of(input, size_of(input)).device.total();
}

PackedFor chosen(const PlanInput& input, Bytes rank, Bytes shared = Bytes(1'000'000'000'000)) {
  return settle_packing(input, {.rank = rank, .shared = shared}).packed;
}

TEST(Packing, TakesAsMuchAsThereIsRoomFor) {
  const PlanInput input = lora_input();
  const Bytes both = need_with(input, PackedFor::kBoth);
  const Bytes forward = need_with(input, PackedFor::kForward);
  EXPECT_LT(forward, both);
  EXPECT_EQ(chosen(input, both), PackedFor::kBoth);
  EXPECT_EQ(chosen(input, both - Bytes(1)), PackedFor::kForward);
  EXPECT_EQ(chosen(input, forward), PackedFor::kForward);
  EXPECT_EQ(chosen(input, forward - Bytes(1)), PackedFor::kNothing);
}

TEST(Packing, RanksOfAHostShareWhatFitsIntoSharedMemory) {
  const PlanInput input = on_ranks(lora_input(), 2, 0);
  const Bytes much(1'000'000'000'000);
  PlanInput forward = input;
  forward.packed = PackedFor::kForward;
  const Bytes bytes = packed_bytes(forward, size_of(input));
  EXPECT_EQ(chosen(input, much, bytes * 2), PackedFor::kBoth);
  EXPECT_EQ(chosen(input, much, bytes * 2 - Bytes(1)), PackedFor::kForward);
  EXPECT_EQ(chosen(input, much, bytes - Bytes(1)), PackedFor::kNothing);
  EXPECT_EQ(chosen(on_ranks(input, 1, 0), much, Bytes()), PackedFor::kBoth);  // of its own memory
}

TEST(Packing, WhatIsAskedForIsNotChosen) {
  PlanInput input = lora_input();
  input.chooses_packed = false;
  input.packed = PackedFor::kForward;
  EXPECT_EQ(chosen(input, Bytes(1)), PackedFor::kForward);
}

// Frozen linears and the head, once for each product; nothing of the embedding, norms or adapters.
TEST(Packing, CostsTheWeightsOfTheFrozenProducts) {
  const PlanInput input = lora_input();
  const ModelSize size = size_of(input);
  constexpr std::int64_t kBlock = 256 * 256 * 2 + 256 * 128 * 2 + 3 * 256 * 768;
  constexpr std::int64_t kFactors = 4 * kBlock + 2048 * 256;
  EXPECT_EQ(size.packed_forward, kFactors);
  EXPECT_EQ(size.packed_backward, kFactors);
  EXPECT_EQ(packed_bytes(input, size), Bytes(2 * 2 * kFactors));
  PlanInput tied = lora_input();
  tied.model.tie_word_embeddings = true;
  EXPECT_EQ(size_of(tied).packed_forward, kFactors);  // the head reads the embedding
  PlanInput full = input_for({});
  EXPECT_EQ(size_of(full).packed_forward, 0);
}

// A mapped file's pages go back where both products read what is packed, but for an embedding's.
TEST(Packing, GivesBackTheFilesPagesOfPureFactors) {
  PlanInput input = lora_input();
  input.reads_file_as_stored = true;
  const ModelSize size = size_of(input);
  EXPECT_EQ(size.packed_alone, size.packed_forward);
  const auto weights_with = [&](PackedFor packed) {
    input.packed = packed;
    return states_of(input, size).weights;
  };
  EXPECT_EQ(weights_with(PackedFor::kBoth), weights_with(PackedFor::kForward));
  PlanInput tied = input;
  tied.model.tie_word_embeddings = true;
  EXPECT_EQ(size_of(tied).packed_alone, size.packed_alone - 2048 * 256);
  PlanInput dora = input;
  dora.lora->use_dora = true;
  EXPECT_EQ(size_of(dora).packed_alone, 2048 * 256);  // the head's: DoRA reads the linears' rows
}

TEST(Packing, SaysWhatAndWhy) {
  const PlanInput input = lora_input();
  const auto line = [&](Bytes rank) {
    const PackingRoom room{.rank = rank, .shared = rank};
    return packing_line(settle_packing(input, room), room);
  };
  EXPECT_NE(line(Bytes(1'000'000'000'000)).find("forward and backward"), std::string::npos);
  EXPECT_NE(line(need_with(input, PackedFor::kForward)).find("forward alone"), std::string::npos);
  EXPECT_NE(line(Bytes(1)).find("nothing"), std::string::npos);
  EXPECT_EQ(packing_line(input_for({}), {}), "");
}

}  // namespace
}  // namespace zeroth::plan
