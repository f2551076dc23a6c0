#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "data/row_schema.h"

namespace zeroth::data {

// A file of rows, and how they are spelt where that was said of this file.
struct Source {
  // NOLINTNEXTLINE(google-explicit-constructor): a file by itself is a source
  Source(std::filesystem::path path, std::optional<RowColumns> names = std::nullopt)
      : file(std::move(path)), columns(std::move(names)) {}

  std::filesystem::path file;
  std::optional<RowColumns> columns;  // nullopt: as LoadSettings has them
};

using Sources = std::vector<Source>;

}  // namespace zeroth::data
