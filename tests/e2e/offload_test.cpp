#include <filesystem>
#include <fstream>

#include "e2e/ranks.h"
#include "formats/model_config.h"
#include "shapes/families.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mount.h>

// State that rests in files, through the product.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

class OffloadRuns : public RankTest {
 protected:
  void SetUp() override {
    RankTest::SetUp();
    fs::create_directory(path("disk"));
  }

  // Everything that may rest in files does.
  static Words on_file(const std::string& folder = "disk") {
    const std::string block = "--zero_optimization.offload_";
    return {block + "optimizer.device=nvme",
            block + "optimizer.nvme_path=" + folder,
            block + "param.device=nvme",
            block + "param.nvme_path=" + folder};
  }

  static Words full(const std::string& out, int ranks, int stage, const Words& more) {
    return train(out,
                 joined(joined(cut(ranks, 2, 4 / ranks, stage),
                               {"--finetuning_type", "full", "--overwrite_output_dir"}),
                        more));
  }

  [[nodiscard]] Tensors weights_with(int ranks, const Words& more) const {
    (void)good(full("out", ranks, 3, more));
    return tensors_of(path("out/model.safetensors"));
  }
};

TEST_F(OffloadRuns, GiveTheSameBitsAndSayWhatMoved) {
  for (const int ranks : {1, 2}) {
    const Tensors in_memory = weights_with(ranks, {});
    for (const Json& update : records_of(path("out"), "update")) {
      EXPECT_EQ(update.at("offload_read_bytes"), 0);
      EXPECT_EQ(update.at("offload_write_bytes"), 0);
    }
    EXPECT_EQ(weights_with(ranks, on_file()), in_memory) << ranks << " ranks";
    for (const Json& update : records_of(path("out"), "update")) {
      EXPECT_GT(update.at("offload_read_bytes"), 0);
      EXPECT_GT(update.at("offload_write_bytes"), 0);
    }
  }
}

TEST_F(OffloadRuns, SayWhereStateRestsAndLeaveNothingThere) {
  const testing::Outcome outcome = good(full("out", 1, 3, on_file()));
  EXPECT_NE(outcome.errors.find("rest in disk ("), std::string::npos) << outcome.errors;
  EXPECT_NE(outcome.errors.find("GB/s read"), std::string::npos) << outcome.errors;
  EXPECT_TRUE(fs::is_empty(path("disk")));
}

TEST_F(OffloadRuns, AreMovedAsTheSettingsSay) {
  const testing::Outcome outcome = good(full(
      "out", 1, 3, joined(on_file(), {"--aio.backend=threads", "--aio.intra_op_parallelism=2"})));
  EXPECT_NE(outcome.errors.find("pread and pwrite by 2 threads"), std::string::npos)
      << outcome.errors;
}

// Nobody removes or shares the other's files (deepspeed's swap folder is not a run's own).
TEST_F(OffloadRuns, TwoAtOnceInOneFolderKeepOutOfEachOthersWay) {
  const Tensors alone = weights_with(1, {});
  std::vector<pid_t> runs;
  for (const std::string out : {"one", "two"}) {
    runs.push_back(testing::start(
        invocation(full(out, 1, 3, on_file())), path(out + ".out"), path(out + ".err")));
  }
  for (const pid_t run : runs) {
    EXPECT_EQ(testing::wait_for(run), 0);
  }
  EXPECT_EQ(tensors_of(path("one/model.safetensors")), alone);
  EXPECT_EQ(tensors_of(path("two/model.safetensors")), alone);
}

// Files have no names there: what removes the folder's content removes nothing of the run.
TEST_F(OffloadRuns, AFolderThatIsEmptiedMeanwhileChangesNothing) {
  const Tensors alone = weights_with(1, {});
  const pid_t run =
      testing::start(invocation(full("out", 1, 3, on_file())), path("out.out"), path("out.err"));
  for (int i = 0; i < 100; ++i) {
    for (const auto& entry : fs::directory_iterator(path("disk"))) {
      fs::remove(entry);
    }
  }
  EXPECT_EQ(testing::wait_for(run), 0);
  EXPECT_EQ(tensors_of(path("out/model.safetensors")), alone);
}

TEST_F(OffloadRuns, FoldersThatCannotServeAreNamed) {
  write("plain", "a file");
  refused(full("out", 1, 3, on_file("plain")), 6, {"nvme_path plain is not a folder"});
  refused(full("out", 2, 3, on_file("nowhere")), 6, {"nvme_path nowhere does not exist"});
  refused(full("out", 1, 3, on_file("/proc")), 6, {"nvme_path /proc"});
}

TEST_F(OffloadRuns, AFullDiskIsNamedAndTheLastResultStays) {
  (void)good(full("out", 1, 3, {}));
  const std::string before = content_of(path("out/model.safetensors"));
  if (::mount("tmpfs", path("disk").c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "needs root";
  }
  refused(full("out", 2, 3, on_file()), 6, {"nvme_path disk has no room", "bytes are free"});
  ::umount(path("disk").c_str());
  EXPECT_TRUE(content_of(path("out/model.safetensors")) == before);
}

TEST_F(OffloadRuns, BadValuesAreRefusedBeforeAnythingStarts) {
  refused(full("out", 1, 3, joined(on_file(), {"--aio.block_size=1000"})),
          2,
          {"aio.block_size 1000", "multiple of 4096"});
  refused(full("out", 1, 3, joined(on_file(), {"--zero_optimization.offload_optimizer.ratio=1.5"})),
          2,
          {"ratio"});
}

// M03: a model that no memory holds is refused before anything is read, with both numbers.
TEST_F(OffloadRuns, M03WhatDoesNotFitIntoMemoryIsSaidBeforeItIsAllocated) {
  Json config = Json::parse(content_of(path("model/config.json")));
  config["hidden_size"] = 8192;
  config["intermediate_size"] = 28672;
  config["num_attention_heads"] = config["num_key_value_heads"] = 64;
  config["head_dim"] = 128;
  config["num_hidden_layers"] = 800;
  write("model/config.json", config.dump());
  const auto shape = shapes::model_shape(shapes::read_model_config(path("model/config.json")));
  Json header = Json::object();
  std::int64_t end = 0;
  for (const auto& unit : shape.units) {
    for (const auto& parameter : unit.parameters) {
      const std::int64_t begin = end;
      end += 4 * parameter.numel();
      header[parameter.name] = {
          {"dtype", "F32"}, {"shape", parameter.shape}, {"data_offsets", {begin, end}}};
    }
  }
  const std::string text = header.dump();
  std::ofstream file(path("model/model.safetensors"), std::ios::binary);
  const auto length = static_cast<std::uint64_t>(text.size());
  file.write(reinterpret_cast<const char*>(&length), sizeof(length));
  file << text;
  file.close();
  const auto whole = static_cast<std::uintmax_t>(end) + text.size() + sizeof(length);
  fs::resize_file(path("model/model.safetensors"), whole);
  refused(full("out", 2, 1, {}), 6, {"of memory on this host (2 ranks)", "are available"});
}

}  // namespace
}  // namespace zeroth::e2e
