#include "formats/hub_cache.h"

#include <map>

#include "formats/test_files.h"
#include <gtest/gtest.h>

namespace zeroth::formats {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::TemporaryFolder;

Variable variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(HubCache, StandsWhereHuggingFacesToolsPutIt) {
  EXPECT_EQ(hub_cache_folder(variables({{"HOME", "/home/a"}})), "/home/a/.cache/huggingface/hub");
  EXPECT_EQ(hub_cache_folder(variables({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", "/x"}})),
            "/x/huggingface/hub");
  EXPECT_EQ(hub_cache_folder(variables({{"XDG_CACHE_HOME", "/x"}, {"HF_HOME", "/h"}})), "/h/hub");
  EXPECT_EQ(hub_cache_folder(variables({{"HF_HOME", "/h"}, {"HF_HUB_CACHE", "/c"}})), "/c");
  EXPECT_EQ(hub_cache_folder(variables({{"HOME", "/r"}, {"HF_HOME", ""}})),
            "/r/.cache/huggingface/hub");
}

TEST(HubCache, TellsIdsFromPaths) {
  for (const char* id : {"meta-llama/Llama-3.2-1B", "gpt2", "Qwen/Qwen2.5-0.5B_x"}) {
    EXPECT_TRUE(is_hub_id(id)) << id;
  }
  for (const char* path :
       {"", "/a/b", "./model", "../model", "a/b/c", "a//b", "a/", "~/m", "a b", "a/..", "a--b/c"}) {
    EXPECT_FALSE(is_hub_id(path)) << path;
  }
}

class Cache : public ::testing::Test {
 protected:
  Cache() {
    const fs::path repository = folder_.path() / "models--owner--name";
    fs::create_directories(repository / "refs");
    fs::create_directories(repository / "snapshots" / "0123abc");
    fs::create_directories(repository / "snapshots" / "456def0");
    write_file_atomically(repository / "refs" / "main", "456def0\n");
  }

  TemporaryFolder folder_;
};

TEST_F(Cache, ABranchOrACommitIsFound) {
  EXPECT_EQ(find_in_hub_cache(folder_.path(), "owner/name", "main").filename(), "456def0");
  EXPECT_EQ(find_in_hub_cache(folder_.path(), "owner/name", "0123abc").filename(), "0123abc");
}

TEST_F(Cache, WhatIsNotThereIsSaid) {
  expect_error([&] { (void)find_in_hub_cache(folder_.path(), "owner/other", "main"); },
               ErrorKind::kModel,
               {"owner/other is neither a folder nor in", "hf download owner/other"});
  expect_error([&] { (void)find_in_hub_cache(folder_.path(), "owner/name", "v2"); },
               ErrorKind::kModel,
               {"no revision \"v2\"", "there: 0123abc, 456def0"});
  fs::remove_all(folder_.path() / "models--owner--name" / "snapshots");
  expect_error([&] { (void)find_in_hub_cache(folder_.path(), "owner/name", "main"); },
               ErrorKind::kModel,
               {"there: no snapshot"});
}

}  // namespace
}  // namespace zeroth::formats
