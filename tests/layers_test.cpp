#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "base/file.h"
#include "base/text.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

// The layer table of docs/architecture.md against every #include under src/.
namespace zeroth {
namespace {

namespace fs = std::filesystem;

struct Folder {
  std::set<std::string> may_use;  // folders, closed under "may use"
  bool sees_torch = true;
};

using Layers = std::map<std::string, Folder>;

const fs::path kRoot = ZEROTH_SOURCE_DIR;

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (const std::string& cell : split(line, '|')) {
    cells.emplace_back(trim(cell));
  }
  return cells;
}

std::set<std::string> listed(const std::string& cell) {
  std::set<std::string> names;
  for (const std::string& name : split(cell, ',')) {
    if (trim(name) != "-") {
      names.emplace(trim(name));
    }
  }
  return names;
}

// Rows look like: | `cli` * | the front ... | config, shapes |
Layers read_table() {
  Layers layers;
  const std::regex row(R"(\|\s*`([a-z_]+)`(\s*\*)?\s*\|.*\|.*\|)");
  for (const std::string& line :
       split(read_file(kRoot / "docs" / "architecture.md", ErrorKind::kDisk), '\n')) {
    std::smatch match;
    if (std::regex_match(line, match, row)) {
      layers[match[1]] = {.may_use = listed(cells_of(line).at(3)), .sees_torch = !match[2].matched};
    }
  }
  return layers;
}

void close_under_use(Layers& layers) {
  std::set<std::string> all;
  for (const auto& [name, folder] : layers) {
    all.insert(name);
  }
  for (bool grew = true; grew;) {
    grew = false;
    for (auto& [name, folder] : layers) {
      std::set<std::string> closed = folder.may_use;
      if (closed.contains("all")) {
        closed.insert(all.begin(), all.end());
      }
      for (const std::string& used : folder.may_use) {
        if (layers.contains(used)) {
          closed.insert(layers[used].may_use.begin(), layers[used].may_use.end());
        }
      }
      grew = grew || closed.size() != folder.may_use.size();
      folder.may_use = std::move(closed);
    }
  }
}

class LayersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    layers_ = read_table();
    close_under_use(layers_);
  }

  template <typename Visit>
  static void for_each_include(Visit visit) {
    const std::regex include(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
      const fs::path path = fs::relative(entry.path(), kRoot / "src");
      if (path.extension() != ".h" && path.extension() != ".cpp") {
        continue;
      }
      for (const std::string& line : split(read_file(entry.path(), ErrorKind::kDisk), '\n')) {
        std::smatch match;
        if (line.find("include") != std::string::npos && std::regex_match(line, match, include)) {
          visit(path, path.begin()->string(), match[1] == "<", match[2].str());
        }
      }
    }
  }

  Layers layers_;
};

TEST_F(LayersTest, EveryFolderHasARowAndEveryRowAFolder) {
  for (const auto& entry : fs::directory_iterator(kRoot / "src")) {
    if (entry.is_directory()) {
      EXPECT_TRUE(layers_.contains(entry.path().filename().string())) << entry.path();
    }
  }
  for (const auto& [name, folder] : layers_) {
    EXPECT_TRUE(fs::is_directory(kRoot / "src" / name)) << name;
    for (const std::string& used : folder.may_use) {
      EXPECT_TRUE(used == "all" || layers_.contains(used)) << name << " may use " << used;
    }
  }
}

TEST_F(LayersTest, ArrowsPointDownOnly) {
  for (const auto& [name, folder] : layers_) {
    EXPECT_TRUE(folder.may_use.contains("all") || !folder.may_use.contains(name))
        << name << " uses itself by a circle";
  }
}

TEST_F(LayersTest, FoldersIncludeOnlyWhatTheTableAllows) {
  for_each_include([&](const fs::path& file,
                       const std::string& folder,
                       bool angled,
                       const std::string& included) {
    const auto slash = included.find('/');
    if (angled || slash == std::string::npos) {
      return;
    }
    const std::string used = included.substr(0, slash);
    if (layers_.contains(used) && used != folder) {
      EXPECT_TRUE(layers_[folder].may_use.contains(used)) << file << " includes " << included;
    }
  });
}

// Its loop is in a header, and plain where a file is compiled without OpenMP's flag, as ours are.
TEST_F(LayersTest, NothingLoopsByAtensParallelFor) {
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    if (entry.path().extension() == ".cpp") {
      const std::string text = read_file(entry.path(), ErrorKind::kDisk);
      EXPECT_EQ(text.find("at::parallel_for("), std::string::npos)
          << entry.path() << ": kernels/parallel.h has for_each_range";
    }
  }
}

TEST_F(LayersTest, StarredFoldersNeverSeeTheEngine) {
  for_each_include(
      [&](const fs::path& file, const std::string& folder, bool, const std::string& included) {
        const std::string top = included.substr(0, included.find('/'));
        const bool is_torch = top == "torch" || top == "ATen" || top == "c10";
        EXPECT_TRUE(!is_torch || layers_[folder].sees_torch) << file << " includes " << included;
      });
  for (const auto& [name, folder] : layers_) {
    for (const std::string& used : folder.sees_torch ? std::set<std::string>{} : folder.may_use) {
      EXPECT_FALSE(layers_[used].sees_torch)
          << name << " is without LibTorch, but may use " << used;
    }
  }
}

}  // namespace
}  // namespace zeroth
