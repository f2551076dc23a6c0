#include "base/output_folder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace zeroth {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_unwritable(const fs::path& folder, const std::string& reason) {
  throw Error(ErrorKind::kDisk,
              fmt::format("cannot write to the output folder {}: {}\n  Choose another folder with "
                          "--output_dir, or mend its rights.",
                          folder.string(),
                          reason));
}

std::string holder_of(int descriptor) {
  std::array<char, 32> text{};
  const ssize_t length = ::pread(descriptor, text.data(), text.size() - 1, 0);
  const std::string pid(
      trim(std::string_view(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0)));
  return pid.empty() ? "another run" : fmt::format("a run that is still going (process {})", pid);
}

// The folder's lock file, locked; -1 if it was replaced between opening and locking (its holder
// just ended).
int try_lock(const fs::path& lock_path) {
  const fs::path folder = lock_path.parent_path();
  const int descriptor = ::open(lock_path.c_str(), O_RDWR | O_CREAT, 0644);
  if (descriptor < 0) {
    refuse_unwritable(folder, std::strerror(errno));
  }
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    const int why = errno;
    const std::string holder = holder_of(descriptor);
    ::close(descriptor);
    if (why != EWOULDBLOCK) {
      refuse_unwritable(folder,
                        fmt::format("its lock file cannot be locked: {}", std::strerror(why)));
    }
    throw Error(ErrorKind::kConfig,
                fmt::format("the output folder {} is in use by {}\n  Choose another folder with "
                            "--output_dir, or wait "
                            "until that run has ended.",
                            folder.string(),
                            holder));
  }

  struct stat locked {};

  struct stat present {};

  if (::fstat(descriptor, &locked) == 0 && ::stat(lock_path.c_str(), &present) == 0 &&
      locked.st_ino == present.st_ino) {
    return descriptor;
  }
  ::close(descriptor);
  return -1;
}

void write_holder(int descriptor, const fs::path& folder) {
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    const int why = errno;
    ::close(descriptor);
    refuse_unwritable(folder, std::strerror(why));
  }
}

bool is_file_part(std::string_view name) {
  return name.starts_with("model-") && name.ends_with(".safetensors") &&
         name.find("-of-") != std::string_view::npos;
}

bool is_checkpoint(const fs::directory_entry& entry) {
  std::string name = entry.path().filename().string();
  for (const std::string_view ending : {kPartialEnding, kRemovedEnding}) {
    if (name.ends_with(ending)) {
      name.resize(name.size() - ending.size());
    }
  }
  return entry.is_directory() && name.size() > kCheckpointPrefix.size() &&
         name.starts_with(kCheckpointPrefix) &&
         std::all_of(name.begin() + kCheckpointPrefix.size(), name.end(), [](char c) {
           return c >= '0' && c <= '9';
         });
}

bool is_result(const fs::directory_entry& entry, const std::vector<std::string>& more) {
  static const std::vector<std::string> names{"adapter_model.safetensors",
                                              "adapter_config.json",
                                              "model.safetensors",
                                              "model.safetensors.index.json",
                                              "metrics.jsonl",
                                              "generated_predictions.jsonl",
                                              "trainer_state.json",
                                              "latest",
                                              "effective_config.json",
                                              "predict_results.json"};
  const std::string name = entry.path().filename().string();
  const auto holds = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  return holds(names) || holds(more) || is_file_part(name) || is_checkpoint(entry);
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& folder) : lock_path_(folder / kOutputLock) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder)) {
    refuse_unwritable(folder, error ? error.message() : "it is not a folder");
  }
  while (descriptor_ < 0) {
    descriptor_ = try_lock(lock_path_);
  }
  write_holder(descriptor_, folder);
}

OutputFolder::OutputFolder(OutputFolder&& other) noexcept
    : lock_path_(std::move(other.lock_path_)), descriptor_(std::exchange(other.descriptor_, -1)) {
}

OutputFolder::~OutputFolder() {
  if (descriptor_ >= 0) {
    ::unlink(lock_path_.c_str());  // while it is still locked: see try_lock
    ::close(descriptor_);
  }
}

std::vector<fs::path> results_in(const fs::path& folder, const std::vector<std::string>& more) {
  std::vector<fs::path> results;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (is_result(*entry, more)) {
      results.push_back(entry->path());
    }
  }
  std::sort(results.begin(), results.end());
  return results;
}

bool holds_records_alone(const fs::path& folder) {
  const std::vector<fs::path> results = results_in(folder);
  return std::all_of(results.begin(), results.end(), [](const fs::path& result) {
    const std::string name = result.filename().string();
    return name == "metrics.jsonl" || name == "effective_config.json" ||
           name.ends_with(kPartialEnding) || name.ends_with(kRemovedEnding);
  });
}

void refuse_existing_results(const fs::path& folder,
                             bool overwrite,
                             const std::vector<std::string>& more) {
  const std::vector<fs::path> results = results_in(folder, more);
  if (results.empty() || overwrite) {
    return;
  }
  std::vector<std::string> names;
  for (const fs::path& result : results) {
    names.push_back(result.filename().string());
  }
  throw Error(
      ErrorKind::kConfig,
      fmt::format("the output folder {} holds results of an earlier run: {}\n  Choose another "
                  "folder with --output_dir, or replace them with --overwrite_output_dir.",
                  folder.string(),
                  join(names, ", ")));
}

void remove_results(const fs::path& folder, const std::vector<std::string>& more) {
  for (const fs::path& result : results_in(folder, more)) {
    std::error_code error;
    fs::remove_all(result, error);
    if (error) {
      throw Error(ErrorKind::kDisk,
                  fmt::format("cannot remove {}: {}", result.string(), error.message()));
    }
  }
}

}  // namespace zeroth
