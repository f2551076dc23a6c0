#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace zeroth {

inline constexpr auto kOutputLock = ".zeroth.lock";
// A checkpoint's folder, and what a stopped process leaves of one that it wrote, or removed.
inline constexpr std::string_view kCheckpointPrefix = "checkpoint-";
inline constexpr std::string_view kPartialEnding = ".partial";
inline constexpr std::string_view kRemovedEnding = ".removed";

// An output folder that belongs to one run at a time. The lock is flock(2) on OUT/.zeroth.lock: the
// kernel drops it with the last process that holds the descriptor, so a dead run never blocks a new
// one. The descriptor is inherited by the processes that the run starts: the lock lives as long as
// any of them.
class OutputFolder {
 public:
  // Makes `folder` where it is missing and takes its lock. kConfig while a live run holds it, kDisk
  // where it cannot be made or written to.
  explicit OutputFolder(const std::filesystem::path& folder);
  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

 private:
  std::filesystem::path lock_path_;
  int descriptor_ = -1;
};

// What a run left in `folder`: weights, adapters, records, predictions, checkpoints. Nothing else
// is ours. `more` names further files that count as results for one command.
[[nodiscard]] std::vector<std::filesystem::path> results_in(
    const std::filesystem::path& folder, const std::vector<std::string>& more = {});

// Whether `folder` holds nothing but the records of a run that came to no result and no checkpoint.
[[nodiscard]] bool holds_records_alone(const std::filesystem::path& folder);

// kConfig if the folder holds results and they may not be overwritten.
void refuse_existing_results(const std::filesystem::path& folder,
                             bool overwrite,
                             const std::vector<std::string>& more = {});

// Removes what results_in() lists. Called when the new run has read all its inputs, so that a run
// that is refused loses nothing.
void remove_results(const std::filesystem::path& folder, const std::vector<std::string>& more = {});

}  // namespace zeroth
