#include "checkpoint/folder.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/output_folder.h"
#include "base/text.h"
#include "checkpoint/manifest.h"
#include "formats/strict_json.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace zeroth::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kShownName = 80;

[[noreturn]] void fail(const std::string& what, const fs::path& path, const std::string& why) {
  throw Error(ErrorKind::kDisk,
              fmt::format("cannot {} {}: {}\n  Checkpoints that stood before are as they were. See "
                          "to the disk of output_dir, and go on with --resume_from_checkpoint "
                          "latest.",
                          what,
                          path.string(),
                          why));
}

// "checkpoint-20", and nothing behind the number.
std::optional<std::int64_t> update_of(std::string_view name) {
  if (!name.starts_with(kCheckpointPrefix)) {
    return std::nullopt;
  }
  name.remove_prefix(kCheckpointPrefix.size());
  std::int64_t update = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), update);
  const bool whole = error == std::errc() && end == name.data() + name.size();
  return whole ? std::optional(update) : std::nullopt;
}

bool is_leftover(std::string_view name) {
  for (const std::string_view ending : {kPartialEnding, kRemovedEnding}) {
    if (name.ends_with(ending) && update_of(name.substr(0, name.size() - ending.size()))) {
      return true;
    }
  }
  return false;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  return entries;
}

void require_synced(const fs::path& folder) {
  if (const std::error_code error = sync_folder(folder)) {
    fail("sync", folder, error.message());
  }
}

void rename_folder(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    fail("rename to " + to.string() + " the folder", from, std::strerror(errno));
  }
}

void remove_whole(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) {
    fail("remove", path, error.message());
  }
}

fs::path going_name(const fs::path& checkpoint) {
  return checkpoint.string() + std::string(kRemovedEnding);
}

void remove_checkpoint(const fs::path& checkpoint) {
  const fs::path going = going_name(checkpoint);
  remove_whole(going);
  rename_folder(checkpoint, going);
  remove_whole(going);
}

// In one step where the file system can exchange two names, so that there is no moment without.
void replace_checkpoint(const fs::path& partial, const fs::path& final) {
  if (::renameat2(AT_FDCWD, partial.c_str(), AT_FDCWD, final.c_str(), RENAME_EXCHANGE) == 0) {
    remove_whole(partial);
    return;
  }
  const fs::path going = going_name(final);
  remove_whole(going);
  rename_folder(final, going);
  rename_folder(partial, final);
  remove_whole(going);
}

std::string names_of(const std::vector<Found>& found) {
  std::vector<std::string> names;
  for (const Found& checkpoint : found) {
    const std::string name = checkpoint.folder.filename().string();
    names.push_back(checkpoint.fault.empty() ? name : name + " (incomplete)");
  }
  return names.empty() ? "no checkpoint" : join(names, ", ");
}

[[noreturn]] void refuse(const std::string& what, const std::string& mend) {
  throw Error(ErrorKind::kCheckpoint, what + "\n  " + mend);
}

Choice choose_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    refuse(
        fmt::format("there is no checkpoint folder {} (--resume_from_checkpoint)", folder.string()),
        "Give a folder checkpoint-N, or latest for the newest in output_dir.");
  }
  const std::string fault = fault_of(folder);
  if (fault.empty()) {
    return {.folder = folder, .remarks = {}};
  }
  const std::vector<Found> inside = checkpoints_in(folder);
  if (!inside.empty()) {
    refuse(fmt::format("{} is not a checkpoint, but holds {} (--resume_from_checkpoint)",
                       folder.string(),
                       names_of(inside)),
           fmt::format("Give one of them: --resume_from_checkpoint {}.",
                       inside.back().folder.string()));
  }
  refuse(fmt::format(
             "nothing can go on from {} (--resume_from_checkpoint): {}", folder.string(), fault),
         "Give another checkpoint, or start a new run from its weights: --adapter_name_or_path or "
         "--model_name_or_path.");
}

// The name in the file `latest`; empty: there is no such file.
std::string latest_name(const fs::path& output) {
  const fs::path word = output / kLatestFile;
  std::error_code error;
  if (fs::is_directory(word, error)) {
    refuse(word.string() + " is a folder, where the name of a checkpoint should stand",
           "Remove it, or give a checkpoint's folder: --resume_from_checkpoint.");
  }
  return fs::exists(word, error) ? std::string(trim(read_file(word, ErrorKind::kCheckpoint))) : "";
}

const Found* find_name(const std::vector<Found>& found, const std::string& name) {
  const auto there = std::find_if(found.begin(), found.end(), [&](const Found& checkpoint) {
    return checkpoint.folder.filename() == name;
  });
  return there == found.end() ? nullptr : &*there;
}

// Newer ones than the choice: half-written by a process that was stopped, or left over where a run
// went back to an older one.
Choice chosen(const Found& choice, const std::vector<Found>& found) {
  Choice result{.folder = choice.folder, .remarks = {}};
  for (const Found& other : found) {
    if (other.update > choice.update) {
      result.remarks.push_back(fmt::format(
          "{} is passed over: {}",
          other.folder.filename().string(),
          other.fault.empty()
              ? fmt::format("{} names {}", kLatestFile, choice.folder.filename().string())
              : "incomplete, " + other.fault));
    }
  }
  return result;
}

// The newest complete one, where the word `latest` is of no use.
Choice choose_newest(const std::vector<Found>& found) {
  const auto newest = std::find_if(
      found.rbegin(), found.rend(), [](const Found& one) { return one.fault.empty(); });
  return newest == found.rend() ? Choice{} : chosen(*newest, found);
}

Choice choose_auto(const fs::path& output, const std::vector<Found>& found) {
  const std::string name = latest_name(output);
  const Found* named = find_name(found, name);
  if (named != nullptr && named->fault.empty()) {
    return chosen(*named, found);
  }
  Choice newest = choose_newest(found);
  if (!name.empty()) {
    newest.remarks.push_back(fmt::format("{} names {}, which is {}",
                                         (output / kLatestFile).string(),
                                         formats::printable(name, kShownName),
                                         named == nullptr ? "not there" : "incomplete"));
  }
  return newest;
}

Choice choose_latest(const fs::path& output, const std::vector<Found>& found) {
  const std::string name = latest_name(output);
  const Found* named = find_name(found, name);
  if (named != nullptr && named->fault.empty()) {
    return chosen(*named, found);
  }
  const std::string what =
      name.empty()
          ? fmt::format(
                "no \"{}\" in {} (--resume_from_checkpoint latest)", kLatestFile, output.string())
          : fmt::format("{} (--resume_from_checkpoint latest) names {}, which is {}",
                        (output / kLatestFile).string(),
                        formats::printable(name, kShownName),
                        named == nullptr ? "not there" : "incomplete: " + named->fault);
  const Choice other = choose_newest(found);
  refuse(fmt::format("{}; found: {}", what, names_of(found)),
         other.folder.empty()
             ? "Give a checkpoint's folder, or auto to start at update 0 where there is none."
             : fmt::format("Give the one to go on from: --resume_from_checkpoint {}",
                           other.folder.string()));
}

}  // namespace

std::string folder_name(std::int64_t update) {
  return fmt::format("{}{}", kCheckpointPrefix, update);
}

bool lies_in(const fs::path& checkpoint, const fs::path& output) {
  std::error_code error;
  const fs::path real = fs::canonical(checkpoint, error);
  return !error && fs::equivalent(real.parent_path(), output, error) && !error;
}

fs::path partial_folder(const fs::path& output, std::int64_t update) {
  return output / (folder_name(update) + std::string(kPartialEnding));
}

std::string fault_of(const fs::path& checkpoint, const Manifest& manifest) {
  std::vector<std::string> faults;
  std::vector<std::string> expected;
  std::vector<std::string> found;
  for (const FileEntry& file : manifest.files) {
    std::error_code error;
    const auto size = fs::file_size(checkpoint / file.name, error);
    expected.push_back(file.name);
    if (error) {
      faults.push_back(fmt::format("{} is missing", file.name));
      continue;
    }
    found.push_back(file.name);
    if (static_cast<std::int64_t>(size) != file.bytes) {
      faults.push_back(fmt::format("{} has {} bytes instead of {}", file.name, size, file.bytes));
    }
  }
  if (faults.empty()) {
    return "";
  }
  return fmt::format("{}; expected {}; found {}",
                     join(faults, ", "),
                     join(expected, ", "),
                     found.empty() ? "none of them" : join(found, ", "));
}

std::string fault_of(const fs::path& checkpoint) {
  std::error_code error;
  if (!fs::exists(checkpoint / kManifestFile, error)) {
    return fmt::format("{} is missing, which is written last", kManifestFile);
  }
  try {
    return fault_of(checkpoint, read_manifest(checkpoint));
  } catch (const Error& fault) {
    return fault.what();
  }
}

namespace {

// Without a look inside; half-written ones have their fault.
std::vector<Found> names_in(const fs::path& output) {
  std::vector<Found> found;
  for (const fs::path& path : entries_of(output)) {
    const std::string name = path.filename().string();
    std::error_code error;
    if (const auto update = update_of(name); update && fs::is_directory(path, error)) {
      found.push_back({.folder = path, .update = *update, .fault = {}});
    } else if (name.ends_with(kPartialEnding) && is_leftover(name)) {
      const std::string_view whole =
          std::string_view(name).substr(0, name.size() - kPartialEnding.size());
      found.push_back({.folder = path,
                       .update = update_of(whole).value_or(0),
                       .fault = "the process that wrote it was stopped"});
    }
  }
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) {
    return a.update < b.update;
  });
  return found;
}

}  // namespace

std::vector<Found> checkpoints_in(const fs::path& output) {
  std::vector<Found> found = names_in(output);
  for (Found& checkpoint : found) {
    if (checkpoint.fault.empty()) {
      checkpoint.fault = fault_of(checkpoint.folder);
    }
  }
  return found;
}

Choice choose(const std::string& from, const fs::path& output) {
  if (from.empty()) {
    return {};
  }
  if (from != "latest" && from != "auto") {
    return choose_folder(from);
  }
  const std::vector<Found> found = checkpoints_in(output);
  return from == "latest" ? choose_latest(output, found) : choose_auto(output, found);
}

fs::path begin_writing(const fs::path& output, std::int64_t update) {
  fs::path partial = partial_folder(output, update);
  remove_whole(partial);
  std::error_code error;
  fs::create_directory(partial, error);  // not its parents: output_dir has gone if they are missing
  if (error) {
    fail("make", partial, error.message());
  }
  return partial;
}

fs::path publish(const fs::path& output, std::int64_t update) {
  const fs::path partial = partial_folder(output, update);
  fs::path final = output / folder_name(update);
  require_synced(partial);
  std::error_code error;
  if (fs::exists(final, error)) {
    replace_checkpoint(partial, final);
  } else {
    rename_folder(partial, final);
  }
  require_synced(output);
  write_file_atomically(output / kLatestFile, folder_name(update) + "\n");
  return final;
}

std::vector<std::string> rotate(const fs::path& output,
                                std::int64_t limit,
                                const std::vector<fs::path>& kept) {
  std::vector<std::string> newer;
  if (limit == 0) {
    return newer;
  }
  std::vector<Found> found = names_in(output);  // after every save: nothing is read
  const std::string latest = latest_name(output);
  const Found* named = find_name(found, latest);
  const std::int64_t newest = named == nullptr ? 0 : named->update;
  // Newer than the latest: left over from before the run went back to an older one.
  std::stable_partition(
      found.begin(), found.end(), [&](const Found& one) { return one.update > newest; });
  auto too_many = static_cast<std::int64_t>(found.size()) - limit;
  for (const Found& checkpoint : found) {
    const fs::path name = checkpoint.folder.filename();
    const bool stays =
        name == latest || std::any_of(kept.begin(), kept.end(), [&](const auto& one) {
          return one.filename() == name;
        });
    if (too_many > 0 && !stays) {
      remove_checkpoint(checkpoint.folder);
      --too_many;
      if (checkpoint.update > newest) {
        newer.push_back(name.string());
      }
    }
  }
  return newer;
}

void remove_leftovers(const fs::path& output) {
  for (const fs::path& path : entries_of(output)) {
    if (is_leftover(path.filename().string())) {
      remove_whole(path);
    }
  }
}

}  // namespace zeroth::checkpoint
