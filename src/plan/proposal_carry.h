#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "config/run_config.h"

// What a proposal takes over from the run that it is made for: a file that is read back must set
// what the user had set.
namespace zeroth::plan {

// A setting that the file says, or the command that goes with it.
struct Carried {
  std::string key;
  Json value;          // in force; null: left to others by "auto"
  std::string source;  // for people
  std::string path{};  // where it stands in a ds_config.json; empty: an option of the command
  Json written{};      // what stands there, in DeepSpeed's words
};

// Whether a proposal takes over what the run has there. It decides itself on batch, stage, types,
// clipping and bucket, and what only the command concerns stays there; secrets are never written.
[[nodiscard]] bool may_be_carried(const std::string& key);

// All that was given and is in force, or was left open by "auto" and is filled. With keys of the
// optimizer's or the schedule's block comes the type that is in force.
[[nodiscard]] std::vector<Carried> carried_settings(const config::RunConfig& config);

// What was given and is not taken over, with the reason, one line each.
[[nodiscard]] std::vector<std::string> left_out_of(const config::RunConfig& config);

// "--cutoff_len 1024 --packing false": those that have no place in the file.
[[nodiscard]] std::vector<std::string> words_of(const std::vector<Carried>& carried);

}  // namespace zeroth::plan
