#include "train/save_result.h"

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <thread>
#include <type_traits>

#define XXH_INLINE_ALL
#include "base/file.h"
#include "comm/make.h"
#include "formats/test_files.h"
#include "shapes/families.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/version.h>

// What is saved depends on the weights alone, and saving holds one tensor at a time on every rank.
namespace zeroth::train {
namespace {

namespace fs = std::filesystem;
using testing::FileSizeLimit;
using testing::TemporaryFolder;

fs::path golden(const std::string& name) {
  return fs::path(ZEROTH_SOURCE_DIR) / "tests/golden/transformers" / name;
}

std::string hash(const fs::path& path) {
  const std::string content = read_file(path, ErrorKind::kModel);
  return fmt::format("{:016x}", XXH3_64bits(content.data(), content.size()));
}

models::Model llama3(const models::ModelOptions& options = {}) {
  const fs::path folder = golden("llama3");
  models::Model model = models::load_model(shapes::read_model_config(folder / "config.json"),
                                           std::make_shared<const formats::ModelWeights>(folder),
                                           options);
  if (options.lora) {
    models::load_adapter(
        model, formats::SafetensorsFile(golden("peft/llama3/plain/adapter_model.safetensors")));
  }
  return model;
}

struct Setting {
  int stage = 0;
  int ranks = 1;
  at::ScalarType dtype = at::kBFloat16;
};

// One rank's model and engine.
struct Rank {
  Rank(const Setting& setting,
       models::Model with_model,
       std::shared_ptr<comm::Communicator> communicator)
      : model(std::move(with_model)),
        engine(model.units,
               optim::make_adamw({}),
               {.zero_stage = setting.stage, .dtype = setting.dtype},
               std::move(communicator)) {}

  models::Model model;
  engine::Engine engine;
};

// Runs `work` as each of the ranks; gives what each threw.
std::vector<std::exception_ptr> as_ranks(const Setting& setting,
                                         const std::function<models::Model()>& make_model,
                                         const std::function<void(const Rank&)>& work) {
  auto group = comm::make_thread_group(setting.ranks);
  std::vector<std::exception_ptr> errors(group.size());
  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < group.size(); ++index) {
    threads.emplace_back([&, index] {
      at::set_num_threads(1);
      const std::shared_ptr<comm::Communicator> communicator = std::move(group[index]);
      try {
        work(Rank(setting, make_model(), communicator));
      } catch (const std::exception& error) {
        errors[index] = std::current_exception();
        communicator->abort(error.what());
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return errors;
}

void run(const Setting& setting,
         const std::function<models::Model()>& make_model,
         const std::function<void(const Rank&)>& work) {
  for (const std::exception_ptr& error : as_ranks(setting, make_model, work)) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
}

const std::vector<Setting> kSettings{{.stage = 0, .ranks = 1},
                                     {.stage = 1, .ranks = 2},
                                     {.stage = 2, .ranks = 3},
                                     {.stage = 3, .ranks = 2}};

// The hashes of this file are of what the first version wrote.
TEST(SaveResult, TheSameWeightsGiveTheSameBytesAsEver) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "model.safetensors";
  models::Model model = llama3({.trainable = false});
  for (const auto& unit : model.units) {
    for (models::Parameter& parameter : unit->parameters()) {
      parameter.materialize(at::kFloat);
    }
  }
  for (const auto& [dtype, expected, config] :
       {std::tuple{at::kFloat, "942deb74072fff45", "b22f5c7c1ab9bed3"},
        {at::kBFloat16, "3c2e8c397e6cc576", "0618274fa8bb4848"},
        {at::kHalf, "a701e5364fb1d0c1", "27680b80ec316ae8"}}) {
    EXPECT_EQ(save_model(folder.path(), model, dtype),
              (std::vector<fs::path>{file, folder.path() / "config.json"}));
    EXPECT_EQ(hash(file), expected);
    EXPECT_EQ(hash(folder.path() / "config.json"), config);
  }
}

TEST(SaveResult, NeitherStageNorRanksShowInTheBytes) {
  for (const Setting& setting : kSettings) {
    const TemporaryFolder folder;
    run(
        setting,
        [] { return llama3(); },
        [&](const Rank& rank) {
          const auto files = save_model(folder.path(), rank.model, rank.engine, at::kBFloat16);
          EXPECT_EQ(files.size(), rank.engine.comm().rank() == 0 ? 2U : 0U);
        });
    EXPECT_EQ(hash(folder.path() / "model.safetensors"), "3c2e8c397e6cc576")
        << "stage " << setting.stage;
  }
}

TEST(SaveResult, AnAdapterToo) {
  const models::ModelOptions lora{.dtype = at::kBFloat16,
                                  .lora = shapes::LoraSettings{.rank = 8, .alpha = 16}};
  const formats::AdapterConfig config{
      .base_model_name_or_path = "model", .rank = 4, .alpha = 8, .target_modules = {"all-linear"}};
  for (const Setting& setting : kSettings) {
    const TemporaryFolder folder;
    run(
        setting,
        [&] { return llama3(lora); },
        [&](const Rank& rank) {
          (void)save_adapter(folder.path(), rank.model, rank.engine, config);
        });
    EXPECT_EQ(hash(folder.path() / "adapter_model.safetensors"), "37fb5a2885081040")
        << "stage " << setting.stage;
    EXPECT_EQ(hash(folder.path() / "adapter_config.json"), "4fe491ac54a9280b");
  }
}

TEST(SaveResult, WhenTheDiskIsFullTheOtherRanksDoNotWait) {
  const TemporaryFolder folder;
  const auto save = [&](const Rank& rank) {
    rank.engine.comm().barrier("all have their shared memory");
    std::optional<FileSizeLimit> limit;
    if (rank.engine.comm().rank() == 0) {
      limit.emplace(100'000);  // the file has 217'624 bytes
    }
    (void)save_model(folder.path(), rank.model, rank.engine, at::kBFloat16);
    rank.engine.comm().barrier("end of the save");  // a small file fails when it is finished
  };
  const auto errors = as_ranks(
      {.stage = 3, .ranks = 3}, [] { return llama3(); }, save);
  const auto rethrow = [&](std::size_t rank) {
    ASSERT_TRUE(errors[rank] != nullptr) << "rank " << rank;
    std::rethrow_exception(errors[rank]);
  };
  testing::expect_error([&] { rethrow(0); }, ErrorKind::kDisk, {"model.safetensors"});
  testing::expect_error([&] { rethrow(1); }, ErrorKind::kCommunication, {"rank 0"});
  testing::expect_error([&] { rethrow(2); }, ErrorKind::kCommunication, {"rank 0"});
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

// Bytes that this thread's tensors take, at most at once.
class LiveBytes : public c10::MemoryReportingInfoBase {
 public:
  using Total = std::conditional_t<(TORCH_VERSION_MAJOR >= 2), std::size_t, std::int64_t>;

  void reportMemoryUsage(void* /*data*/,
                         std::int64_t bytes,
                         Total /*allocated*/,
                         Total /*reserved*/,
                         c10::Device /*device*/) override {
    live_ += bytes;
    peak_ = std::max(peak_, live_);
  }

  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }

  [[nodiscard]] std::int64_t peak() const noexcept { return peak_; }

 private:
  std::int64_t live_ = 0;
  std::int64_t peak_ = 0;
};

// The same architecture with many layers: no unit is a large part of it.
formats::ModelConfig deep_config(const TemporaryFolder& folder) {
  Json config = Json::parse(read_file(golden("llama3/config.json"), ErrorKind::kModel));
  config["num_hidden_layers"] = 20;
  return shapes::read_model_config(folder.write("deep.json", config.dump()));
}

std::int64_t largest_unit_bytes(const models::Model& model) {
  std::int64_t largest = 0;
  for (const auto& unit : model.units) {
    std::int64_t numel = 0;
    for (const models::Parameter& parameter : unit->parameters()) {
      numel += parameter.value.numel();
    }
    largest = std::max(largest, numel * static_cast<std::int64_t>(sizeof(float)));
  }
  return largest;
}

TEST(SaveResult, NoRankHoldsMoreThanAUnitAndItsTensor) {
  const TemporaryFolder folder;
  const formats::ModelConfig config = deep_config(folder);
  const models::Model model = models::random_model(config, {});
  const std::int64_t unit_bytes = largest_unit_bytes(model);
  ASSERT_GT(model.num_parameters() * static_cast<std::int64_t>(sizeof(float)), 8 * unit_bytes);
  std::array<std::int64_t, 2> peaks{};
  run(
      {.stage = 3, .ranks = 2, .dtype = at::kFloat},
      [&] { return models::random_model(config, {}); },
      [&](const Rank& rank) {
        auto live = std::make_shared<LiveBytes>();
        const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, live);
        (void)save_model(folder.path(), rank.model, rank.engine, at::kFloat);
        peaks.at(static_cast<std::size_t>(rank.engine.comm().rank())) = live->peak();
      });
  for (const std::int64_t peak : peaks) {
    EXPECT_GT(peak, 0);
    EXPECT_LE(peak, 2 * unit_bytes);
  }
}

}  // namespace
}  // namespace zeroth::train
