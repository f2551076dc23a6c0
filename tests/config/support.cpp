#include "config/support.h"

#include <algorithm>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include <fmt/format.h>
#include <unistd.h>

namespace zeroth::config {
namespace {

namespace fs = std::filesystem;

class ScratchFolder {
 public:
  ScratchFolder()
      : path_(fs::temp_directory_path() / fmt::format("zeroth-config-proofs-{}", getpid())) {
    fs::create_directories(path_);
  }

  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const fs::path& path() const noexcept { return path_; }

 private:
  fs::path path_;
};

}  // namespace

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::vector<std::string> lines;
  for (const std::string& line : split(read_file(file, ErrorKind::kDisk), '\n')) {
    const std::string_view text = trim(line);
    if (!text.empty() && text.front() != '#') {
      lines.emplace_back(text);
    }
  }
  return lines;
}

std::vector<RealFile> real_files() {
  const fs::path root = kSourceDir / "../shared/data/configs";
  std::vector<RealFile> files;
  for (const Dialect dialect : {Dialect::kDeepSpeed, Dialect::kAccelerate}) {
    const std::string folder = dialect == Dialect::kDeepSpeed ? "deepspeed" : "accelerate";
    if (!fs::is_directory(root / folder)) {
      continue;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(root / folder)) {
      files.push_back({.name = folder + "/" + entry.path().filename().string(),
                       .path = entry.path(),
                       .dialect = dialect});
    }
  }
  std::sort(files.begin(), files.end(), [](const RealFile& a, const RealFile& b) {
    return a.name < b.name;
  });
  return files;
}

std::string scratch_file(const std::string& name, const std::string& text) {
  static const ScratchFolder folder;
  const fs::path file = folder.path() / name;
  std::ofstream(file, std::ios::binary) << text;
  return file.string();
}

std::vector<std::string> given_as(Dialect dialect, const std::string& file) {
  switch (dialect) {
    case Dialect::kDeepSpeed:
      return {"--deepspeed", file};
    case Dialect::kAccelerate:
      return {"--accelerate_config", file};
    case Dialect::kRecipe:
      break;
  }
  return {file};
}

Resolution check_file(Dialect dialect, const std::string& file) {
  std::vector<std::string> arguments = given_as(dialect, file);
  if (dialect == Dialect::kDeepSpeed) {
    arguments.insert(arguments.end(), {"--world_size", "1"});
  }
  return resolve_all(Command::kCheck, arguments, {});
}

std::string name_in_messages(const std::string& file) {
  return fs::path(file).filename().string();
}

std::vector<Written> account_of(const Resolution& resolution, const std::string& file) {
  const std::string name = name_in_messages(file);
  std::vector<Written> entries;
  for (const Written& written : resolution.account) {
    if (written.source.substr(0, written.source.rfind(':')) == name) {
      entries.push_back(written);
    }
  }
  return entries;
}

RunConfig values_of(RunConfig config) {
  config.settings.clear();
  config.without_effect.clear();
  config.planned.clear();
  config.notices.clear();
  config.grid.source.clear();
  return config;
}

std::string messages(const Problems& problems) {
  std::string text;
  for (const Problem& problem : problems.all()) {
    text += "\n" + problem.message;
  }
  return text;
}

}  // namespace zeroth::config
