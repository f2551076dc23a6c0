#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "config/dialect.h"
#include "config/resolve.h"

// What the proofs of the configuration share.
namespace zeroth::config {

inline const std::filesystem::path kSourceDir = ZEROTH_SOURCE_DIR;

[[nodiscard]] bool has(const std::string& text, const std::string& part);

// The data lines of a text file of this folder, without comments.
[[nodiscard]] std::vector<std::string> lines_of(const std::filesystem::path& file);

// ../shared/data/configs, in place: deepspeed/*.json and accelerate/*; sorted. Empty if absent.
struct RealFile {
  std::string name;  // "deepspeed/x.json"
  std::filesystem::path path;
  Dialect dialect = Dialect::kDeepSpeed;
};

[[nodiscard]] std::vector<RealFile> real_files();

// A file in a folder of this process's own, which goes away with it. Written anew each time.
[[nodiscard]] std::string scratch_file(const std::string& name, const std::string& text);

// The options that give `file` to a run in its dialect; a recipe is a bare word.
[[nodiscard]] std::vector<std::string> given_as(Dialect dialect, const std::string& file);

// `zeroth check` of one file, DeepSpeed's for one rank.
[[nodiscard]] Resolution check_file(Dialect dialect, const std::string& file);

// "/some/where/ds.json" is "ds.json" in messages and sources.
[[nodiscard]] std::string name_in_messages(const std::string& file);

// The written values that come from this file, not from the command line or another file.
[[nodiscard]] std::vector<Written> account_of(const Resolution& resolution,
                                              const std::string& file);

// What is in force alone, without where it comes from and what is not in force.
[[nodiscard]] RunConfig values_of(RunConfig config);

// All messages, for a failing test.
[[nodiscard]] std::string messages(const Problems& problems);

}  // namespace zeroth::config
