#pragma once

#include <string>
#include <vector>

#include "config/placement.h"
#include "config/resolve.h"

// Settings of a program that uses the library: `zeroth train` without its model, data and output,
// which such a program has itself.
namespace zeroth::config {

struct CodeValue {
  std::string key;
  Json value;
};

struct LibrarySources {
  std::vector<std::string> files;  // ds_config.json
  std::vector<std::string> texts;  // of such files
  std::vector<CodeValue> values;   // as strong as a command line
};

// Sources -> schema -> RunConfig for the ranks that `place` tells of. A key of the command that has
// no place here is refused where it was written for this program, in code, and without effect in a
// file. Without a schedule the rate is constant: nobody knows how many updates there will be.
[[nodiscard]] Resolution resolve_library(const LibrarySources& sources, const Placement& place);

}  // namespace zeroth::config
