#include <algorithm>
#include <map>

#include "formats/model_config.h"
#include "parity/family_folders.h"
#include "parity/placements.h"
#include "plan/files.h"
#include "plan/needs.h"
#include "plan/states.h"
#include "plan/traffic.h"
#include "shapes/families.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// The plan against what was really allocated and sent: the tally counts allocations and knows
// nothing of the plan.
namespace zeroth::parity {
namespace {

using memory::Purpose;

constexpr std::int64_t kRows = 4;
constexpr std::int64_t kTokens = 96;

struct Setting {
  int stage;
  bool lora;
  at::ScalarType dtype;
  bool recompute;
  int ranks = 2;
  bool state_on_file = false;
  bool weights_on_file = false;
  std::string family = "llama3";
  kernels::Packing packing = kernels::Packing::kNone;
};

// One folder for all runs of a family.
std::filesystem::path folder_of(const std::string& family) {
  static std::map<std::string, FamilyFolder> folders;
  if (family == "llama3") {
    return golden() / "transformers/llama3";
  }
  return folders.try_emplace(family, family).first->second.path();
}

Case case_of(const Setting& setting) {
  Case test = resting({.stage = setting.stage,
                       .ranks = setting.ranks,
                       .lora = setting.lora,
                       .dtype = setting.dtype,
                       .recompute = setting.recompute},
                      {setting.state_on_file, setting.weights_on_file});
  test.packing = setting.packing;
  return test;
}

std::string name_of_setting(const Setting& setting) {
  const std::string family = setting.family == "llama3" ? "" : setting.family + "_";
  const bool forward = setting.packing == kernels::Packing::kForward;
  return family + name_of(case_of(setting)) + (forward ? "_forward" : "");
}

// As a worker says it: nothing where the processor has no layout of its own.
plan::PackedFor packed_of(const Setting& setting) {
  constexpr std::int64_t kSize = 64;
  const std::int64_t bytes =
      kernels::PackedWeight::bytes_for({kSize, kSize, setting.dtype}, setting.packing);
  return bytes == 0                                      ? plan::PackedFor::kNothing
         : setting.packing == kernels::Packing::kForward ? plan::PackedFor::kForward
                                                         : plan::PackedFor::kBoth;
}

plan::PlanInput plan_of(const Setting& setting) {
  plan::PlanInput input;
  input.model = shapes::read_model_config(folder_of(setting.family) / "config.json");
  if (setting.lora) {
    input.lora = shapes::LoraSettings{.rank = 4, .alpha = 8};
  }
  input.compute_type = setting.dtype == at::kFloat ? "fp32" : "bf16";
  input.compute_bytes = setting.dtype == at::kFloat ? 4 : 2;
  input.stage = setting.stage;
  input.gradient_checkpointing = setting.recompute;
  input.share_frozen = true;
  input.reads_file_as_stored = setting.dtype == at::kFloat;  // as the files have them
  input.packed = packed_of(setting);
  input.ranks = input.ranks_per_node = setting.ranks;
  input.offload = {
      .optimizer = setting.state_on_file ? plan::Place::kFiles : plan::Place::kDevice,
      .parameters = setting.weights_on_file ? plan::Place::kFiles : plan::Place::kDevice};
  input.micro_batch_rows = kRows;
  input.accumulation = 2;
  input.row_tokens = kTokens;
  return input;
}

models::TokenBatch rows() {
  const at::Tensor ids = patterned_ids(kRows, kTokens);
  return batch_of(ids, ids.clone());
}

struct Counted {
  memory::ByPurpose at_peak{};
  std::int64_t peak = 0;
  std::int64_t gathered_bytes = 0;  // by the last update
  std::int64_t reduced_bytes = 0;
  offload::Traffic files;  // in the last update
};

Counted train(const Setting& setting) {
  Counted counted;
  Case test = case_of(setting);
  test.folder = folder_of(setting.family);
  on_threads(setting.ranks, [&](std::shared_ptr<comm::Communicator> comm) {
    const bool first = comm->rank() == 0;
    comm = comm::make_watched_communicator(
        comm, {.started = [&counted, first](comm::Communicator&, const comm::Traffic& traffic) {
          if (first && traffic.operation == "reduce_scatter") {
            counted.reduced_bytes += traffic.bytes;
          } else if (first && traffic.label.find("weights of") != std::string::npos) {
            counted.gathered_bytes += traffic.bytes;
          }
        }});
    const Trainee trainee = trainee_of(test, comm);
    offload::Traffic before;
    for (int update = 0; update < 2; ++update) {
      if (first) {
        counted.gathered_bytes = counted.reduced_bytes = 0;
        before = trainee.engine->offload_traffic();
      }
      (void)train_window(*trainee.engine, {rows(), rows()});
    }
    if (first) {
      counted.at_peak = trainee.engine->tally().at_peak();
      counted.peak = trainee.engine->tally().peak_bytes();
      const offload::Traffic after = trainee.engine->offload_traffic();
      counted.files = {.read = after.read - before.read, .written = after.written - before.written};
    }
  });
  return counted;
}

class PlanAndTally : public testing::TestWithParam<Setting> {};

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (int stage = 0; stage <= 3; ++stage) {
    for (const bool lora : {false, true}) {
      for (const auto dtype : {at::kFloat, at::kBFloat16}) {
        for (const bool recompute : {false, true}) {
          all.push_back({stage, lora, dtype, recompute});
        }
      }
    }
  }
  return all;
}

// Stages that say something of files, alone and between two ranks.
std::vector<Setting> settings_on_file() {
  std::vector<Setting> all;
  for (const int ranks : {1, 2}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      for (const int stage : {1, 2, 3}) {
        all.push_back({stage, false, dtype, false, ranks, true, false});
        if (stage == 3) {
          all.push_back({stage, false, dtype, false, ranks, false, true});
          all.push_back({stage, false, dtype, true, ranks, true, true});
          all.push_back({stage, true, dtype, false, ranks, true, true});
        }
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(OnFile,
                         PlanAndTally,
                         testing::ValuesIn(settings_on_file()),
                         [](const auto& test) { return name_of_setting(test.param); });

// What families keep besides: norms of heads and behind, soft-caps.
std::vector<Setting> settings_of_families() {
  std::vector<Setting> all;
  for (const char* family : {"qwen2", "qwen3", "gemma", "gemma2", "gemma3_text"}) {
    for (const bool lora : {false, true}) {
      for (const auto dtype : {at::kFloat, at::kBFloat16}) {
        all.push_back(
            {.stage = 0, .lora = lora, .dtype = dtype, .recompute = lora, .family = family});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Families,
                         PlanAndTally,
                         testing::ValuesIn(settings_of_families()),
                         [](const auto& test) { return name_of_setting(test.param); });

INSTANTIATE_TEST_SUITE_P(All, PlanAndTally, testing::ValuesIn(settings()), [](const auto& test) {
  return name_of_setting(test.param);
});

std::vector<Setting> settings_packed() {
  using kernels::Packing;
  std::vector<Setting> all;
  for (const int ranks : {1, 2}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      for (const Packing packing : {Packing::kForward, Packing::kBoth}) {
        for (const char* family : {"llama3", "gemma"}) {  // a head of its own, and a tied one
          all.push_back({.stage = 1,
                         .lora = true,
                         .dtype = dtype,
                         .recompute = false,
                         .ranks = ranks,
                         .family = family,
                         .packing = packing});
        }
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Packed,
                         PlanAndTally,
                         testing::ValuesIn(settings_packed()),
                         [](const auto& test) { return name_of_setting(test.param); });

TEST_P(PlanAndTally, M04AgreeInStatesExactlyAndInAllWithinATenth) {
  const plan::PlanInput input = plan_of(GetParam());
  const plan::ModelSize size = plan::size_of(input);
  const plan::DeviceBytes planned = plan::needs_of(input, size).device;
  const Counted counted = train(GetParam());
  const auto at_peak = [&](Purpose purpose) {
    return counted.at_peak[static_cast<std::size_t>(purpose)];
  };
  EXPECT_EQ(at_peak(Purpose::kWeights), planned.states.weights.count());
  EXPECT_EQ(at_peak(Purpose::kGradients), planned.states.gradients.count());
  EXPECT_EQ(at_peak(Purpose::kMaster), planned.states.master.count());
  EXPECT_EQ(at_peak(Purpose::kMoments), planned.states.moments.count());
  EXPECT_EQ(at_peak(Purpose::kGatherWindow), planned.gather_window.count());
  EXPECT_NEAR(
      static_cast<double>(counted.peak) / static_cast<double>(planned.total().count()), 1.0, 0.1);
}

// A rank's part of what passes: it sends its input but for its own range, and its shard to the
// other.
TEST_P(PlanAndTally, AgreeInTraffic) {
  const plan::PlanInput input = plan_of(GetParam());
  const plan::Traffic planned = plan::traffic_of(input, plan::size_of(input));
  const Counted counted = train(GetParam());
  EXPECT_EQ(counted.gathered_bytes, planned.weights.count());
  if (GetParam().stage > 0) {
    EXPECT_EQ(counted.reduced_bytes / 2, planned.gradients.count());
  }
}

// Whole pages move: a few more than the plan's numbers, of each array of each unit.
TEST_P(PlanAndTally, AgreeInWhatGoesToFiles) {
  const plan::PlanInput input = plan_of(GetParam());
  const plan::FileTraffic planned = plan::file_traffic(input, plan::size_of(input));
  const Counted counted = train(GetParam());
  const std::int64_t pages = input.offload.uses_files() ? 6 * 12 * offload::kAlignment : 0;
  EXPECT_GE(counted.files.read, planned.read.count());
  EXPECT_LE(counted.files.read, planned.read.count() + pages);
  EXPECT_GE(counted.files.written, planned.written.count());
  EXPECT_LE(counted.files.written, planned.written.count() + pages);
}

}  // namespace
}  // namespace zeroth::parity
