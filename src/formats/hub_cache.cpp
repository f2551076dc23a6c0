#include "formats/hub_cache.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestId = 96;  // the hub's own limit

bool is_name(const std::string& part) {
  return !part.empty() && part.front() != '.' && part.front() != '-' && part.back() != '.' &&
         part.back() != '-' && std::all_of(part.begin(), part.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error)) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path folder_of(const fs::path& cache, const std::string& id) {
  return cache / ("models--" + join(split(id, '/'), "--"));
}

[[noreturn]] void fail(const std::string& what, const std::string& id) {
  throw Error(ErrorKind::kModel,
              fmt::format("{}\n  Nothing is downloaded here: fetch it with `hf download {}`, or "
                          "give a folder on this machine.",
                          what,
                          id));
}

// A branch or tag stands in refs with its commit; a commit stands for itself.
std::string commit_of(const fs::path& repository, const std::string& revision) {
  const fs::path ref = repository / "refs" / revision;
  std::error_code error;
  return fs::is_regular_file(ref, error) ? std::string(trim(read_file(ref, ErrorKind::kModel)))
                                         : revision;
}

}  // namespace

fs::path hub_cache_folder(const Variable& variable) {
  if (const auto cache = variable("HF_HUB_CACHE"); cache && !cache->empty()) {
    return *cache;
  }
  if (const auto home = variable("HF_HOME"); home && !home->empty()) {
    return fs::path(*home) / "hub";
  }
  if (const auto cache = variable("XDG_CACHE_HOME"); cache && !cache->empty()) {
    return fs::path(*cache) / "huggingface" / "hub";
  }
  return fs::path(variable("HOME").value_or("/")) / ".cache" / "huggingface" / "hub";
}

bool is_hub_id(const std::string& name) {
  const std::vector<std::string> parts = split(name, '/');
  return name.size() <= kLongestId && parts.size() <= 2 && name.find("--") == std::string::npos &&
         name.find("..") == std::string::npos && std::all_of(parts.begin(), parts.end(), is_name);
}

fs::path find_in_hub_cache(const fs::path& cache,
                           const std::string& id,
                           const std::string& revision) {
  const fs::path repository = folder_of(cache, id);
  std::error_code error;
  if (!fs::is_directory(repository, error)) {
    fail(fmt::format("{} is neither a folder nor in Hugging Face's cache {}", id, cache.string()),
         id);
  }
  const std::vector<std::string> snapshots = folders_in(repository / "snapshots");
  const std::string commit = commit_of(repository, revision);
  if (std::find(snapshots.begin(), snapshots.end(), commit) == snapshots.end()) {
    fail(fmt::format("{} holds no revision \"{}\" of {}; there: {}",
                     repository.string(),
                     revision,
                     id,
                     snapshots.empty() ? "no snapshot" : join(snapshots, ", ")),
         id);
  }
  return repository / "snapshots" / commit;
}

}  // namespace zeroth::formats
