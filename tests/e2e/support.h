#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "process.h"
#include <gtest/gtest.h>

// The product as a user meets it: the built program, real files, exit codes and messages.
namespace zeroth::e2e {

using Words = std::vector<std::string>;
using Tensors = std::map<std::string, std::vector<float>>;

[[nodiscard]] std::filesystem::path shared_data();  // ../shared/data beside the repository
[[nodiscard]] std::string content_of(const std::filesystem::path& file);
[[nodiscard]] std::vector<Json> lines_of(const std::filesystem::path& file);  // JSON lines
[[nodiscard]] std::vector<Json> records_of(const std::filesystem::path& out,
                                           const std::string& kind);
[[nodiscard]] Tensors tensors_of(const std::filesystem::path& file);  // fp32 ones
// ||a - b|| / ||b|| over all tensors; the names must agree.
[[nodiscard]] double relative_distance(const Tensors& a, const Tensors& b);

// Whether it comes true within 20 seconds.
[[nodiscard]] bool soon(const std::function<bool()>& condition);

struct ModelOptions {
  std::int64_t vocab_size = 300;
  bool tied = true;
  bool bf16 = false;
  std::int64_t head_dim = 8;
  std::uint64_t file_bytes = 1ULL << 32;  // above: file parts and an index
};

// A folder of its own with a tiny random LLaMA in model/ and alpaca rows of very different lengths
// in rows.json. Commands run in it, so that paths in them are relative.
class EndToEnd : public ::testing::Test {
 protected:
  void SetUp() override;

  [[nodiscard]] std::filesystem::path path(const std::string& name) const;
  void write(const std::string& name, const std::string& content) const;
  void make_model(const std::string& name, const ModelOptions& options = {}) const;
  // large/: 25.6 M parameters, so that a model is not lost in the program's own memory.
  void make_large_model() const;

  [[nodiscard]] testing::Invocation invocation(const Words& words) const;
  [[nodiscard]] testing::Outcome zeroth(const Words& words) const;
  // Must succeed.
  [[nodiscard]] testing::Outcome good(const Words& words) const;
  // The one JSON object on standard output of a run with --format json that must succeed.
  [[nodiscard]] Json json_of(Words words) const;
  // Must fail with this code and say all these things.
  void refused(const Words& words, int exit_code, const Words& says) const;

  testing::TemporaryFolder folder_;
};

// "train" on model/ and rows.json for 3 updates into `out`, but for what `more` says.
[[nodiscard]] Words train(const std::string& out, const Words& more = {});
[[nodiscard]] Words joined(Words words, const Words& more);

}  // namespace zeroth::e2e
