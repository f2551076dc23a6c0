#pragma once

#include <optional>
#include <string>
#include <vector>

#include "offload/choose_io.h"
#include "plan/files.h"
#include "plan/needs.h"
#include "plan/traffic.h"

namespace zeroth::plan {

// What there is.
struct Budget {
  Bytes device;               // of one rank
  std::optional<Bytes> host;  // of one host, for what is offloaded; nullopt: enough
  // Of the disk that state may rest on, over all ranks of a host; nullopt: not measured.
  std::optional<offload::DiskSpeed> disk;
};

enum class Status {
  kBuilt,
  kPlanned,   // Zeroth cannot do it yet
  kNoEffect,  // the same as another choice: `why`
};

// A stage, and where state rests.
struct Choice {
  int stage = 0;
  Offload offload;
  Status status = Status::kBuilt;
  std::string why;
  Needs needs;
  Traffic traffic;
  FileTraffic file_traffic;
  std::optional<double> file_seconds;  // of one update, where the disk's speed is known
  bool fits = false;
  std::int64_t largest_micro_batch = 0;  // rows that fit; 0: not even one
};

struct Plan {
  PlanInput input;
  Budget budget;
  std::int64_t trainable = 0;
  std::int64_t parameters = 0;  // all of them
  Choice chosen;                // as the settings say
  std::vector<Choice> table;    // each stage with each offload choice
  Bytes saving;                 // by one rank, after the last one
};

[[nodiscard]] Plan make_plan(const PlanInput& input, const Budget& budget);

// One choice by itself.
[[nodiscard]] Choice choice_of(const PlanInput& input,
                               const ModelSize& model,
                               const Budget& budget);

// "none", "optimizer to host", ...
[[nodiscard]] std::string offload_name(const Offload& offload);

}  // namespace zeroth::plan
