#pragma once

#include <filesystem>
#include <string>

#include "data/source.h"

// LLaMA-Factory's dataset_info.json: names of data sets, each with its file, columns and tags.
namespace zeroth::data {

inline constexpr const char* kDatasetInfo = "dataset_info.json";

// What the file in `folder` says of `name`. kData where it is broken or has no such name (those
// that are like it are named); kNotSupported for rows that are elsewhere than in a file, rankings,
// pictures and samples; kConfig for a word that is unknown there.
[[nodiscard]] Source named_source(const std::filesystem::path& folder, const std::string& name);

}  // namespace zeroth::data
