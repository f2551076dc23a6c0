#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"

// Checkpoints within an output folder. A checkpoint appears whole: it is written beside its final
// name and renamed when all of it is on the disk; one that goes is renamed before it is removed. So
// a folder of a checkpoint's name is complete, whenever the process or the machine stops, unless
// somebody else changed it. Nothing here depends on the clock.
namespace zeroth::checkpoint {

inline constexpr auto kLatestFile = "latest";

[[nodiscard]] std::string folder_name(std::int64_t update);  // "checkpoint-20"

// Where a checkpoint is written until it is whole.
[[nodiscard]] std::filesystem::path partial_folder(const std::filesystem::path& output,
                                                   std::int64_t update);

// Whether it is one of that output folder's, however the two are spelt and linked.
[[nodiscard]] bool lies_in(const std::filesystem::path& checkpoint,
                           const std::filesystem::path& output);

struct Found {
  std::filesystem::path folder;
  std::int64_t update = 0;
  std::string fault;  // why nothing can go on from it; empty: it is complete
};

// Those in an output folder, oldest first: complete ones, others, and what a stopped process left
// half-written.
[[nodiscard]] std::vector<Found> checkpoints_in(const std::filesystem::path& output);

// Looks at sizes and the list of contents, not at every byte.
[[nodiscard]] std::string fault_of(const std::filesystem::path& checkpoint);
// The same where the list has been read; empty: the files are as it says.
[[nodiscard]] std::string fault_of(const std::filesystem::path& checkpoint,
                                   const Manifest& manifest);

// What a run goes on from.
struct Choice {
  std::filesystem::path folder;      // empty: nothing; a new run
  std::vector<std::string> remarks;  // what was passed over, and why
};

// `from` is a checkpoint's folder, "latest" or "auto". kCheckpoint, with what there is, where a
// folder is not a complete checkpoint, and where latest finds none; auto then gives an empty
// choice.
[[nodiscard]] Choice choose(const std::string& from, const std::filesystem::path& output);

// An empty folder to write a checkpoint into. What stood there is gone.
std::filesystem::path begin_writing(const std::filesystem::path& output, std::int64_t update);

// Makes what begin_writing() gave the checkpoint of `update`, in place of an older one of the same
// name, and then the latest.
std::filesystem::path publish(const std::filesystem::path& output, std::int64_t update);

// The oldest beyond `limit` go, but never those in `kept` nor the latest. 0: all stay. Gives the
// names of those that went although they are newer than the latest.
std::vector<std::string> rotate(const std::filesystem::path& output,
                                std::int64_t limit,
                                const std::vector<std::filesystem::path>& kept);

// What earlier processes left half-written or half-removed.
void remove_leftovers(const std::filesystem::path& output);

}  // namespace zeroth::checkpoint
