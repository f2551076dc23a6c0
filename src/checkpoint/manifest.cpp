#include "checkpoint/manifest.h"

#include <algorithm>
#include <numeric>

#include "base/file.h"
#include "formats/checksum.h"
#include "formats/safetensors.h"
#include "formats/strict_json.h"
#include "formats/weights_writer.h"
#include <fmt/format.h>

namespace zeroth::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr auto kChecksum = "checksum";
constexpr std::string_view kStateStart = "state-";

Json to_json(const UnitEntry& unit) {
  Json parameters = Json::array();
  for (const ParameterEntry& parameter : unit.parameters) {
    parameters.push_back({{"name", parameter.name}, {"shape", parameter.shape}});
  }
  return {{"name", unit.name}, {"parameters", std::move(parameters)}};
}

Json to_json(const StateEntry& state) {
  return {{"unit", state.unit},
          {"what", state.what},
          {"range", {state.range.begin, state.range.end}},
          {"file", state.file},
          {"checksum", state.checksum}};
}

Json to_json(const FileEntry& file) {
  return {{"name", file.name}, {"bytes", file.bytes}, {"checksum", file.checksum}};
}

template <typename Entry>
Json list_of(const std::vector<Entry>& entries) {
  Json list = Json::array();
  for (const Entry& entry : entries) {
    list.push_back(to_json(entry));
  }
  return list;
}

Json to_json(const Manifest& manifest) {
  return {{"layout", kLayoutVersion},
          {"update", manifest.update},
          {"ranks", manifest.ranks},
          {"zero_stage", manifest.zero_stage},
          {"adapter", manifest.adapter},
          {"master_in_result", manifest.master_in_result},
          {"num_moments", manifest.num_moments},
          {"model_fingerprint", manifest.model_fingerprint},
          {"data_fingerprint", manifest.data_fingerprint},
          {"progress", manifest.progress},
          {"settings", manifest.settings},
          {"units", list_of(manifest.units)},
          {"states", list_of(manifest.states)},
          {"files", list_of(manifest.files)}};
}

UnitEntry unit_from(const Json& json) {
  UnitEntry unit{.name = json.at("name"), .parameters = {}};
  for (const Json& parameter : json.at("parameters")) {
    unit.parameters.push_back({.name = parameter.at("name"), .shape = parameter.at("shape")});
  }
  return unit;
}

// A name without a folder: nobody reads beyond the checkpoint.
FileEntry file_from(const Json& json) {
  FileEntry file{
      .name = json.at("name"), .bytes = json.at("bytes"), .checksum = json.at("checksum")};
  const bool is_name = !file.name.empty() && file.name != "." && file.name != "..";
  if (!is_name || file.name != fs::path(file.name).filename()) {
    throw std::out_of_range("a file beyond its folder");
  }
  return file;
}

// Indices are proved here, so that nobody needs to doubt them later.
StateEntry state_from(const Json& json, const Manifest& manifest) {
  StateEntry state{.unit = json.at("unit"),
                   .what = json.at("what"),
                   .range = {.begin = json.at("range").at(0), .end = json.at("range").at(1)},
                   .file = json.at("file"),
                   .checksum = json.at("checksum")};
  const UnitEntry& unit = manifest.units.at(static_cast<std::size_t>(state.unit));
  (void)manifest.files.at(static_cast<std::size_t>(state.file));
  if (state.range.begin < 0 || state.range.end <= state.range.begin ||
      state.range.end > unit.numel()) {
    throw std::out_of_range("a range beyond its unit");
  }
  return state;
}

Manifest manifest_from(const Json& json) {
  Manifest manifest{.update = json.at("update"),
                    .ranks = json.at("ranks"),
                    .zero_stage = json.at("zero_stage"),
                    .adapter = json.at("adapter"),
                    .master_in_result = json.at("master_in_result"),
                    .num_moments = json.at("num_moments"),
                    .model_fingerprint = json.at("model_fingerprint"),
                    .data_fingerprint = json.at("data_fingerprint"),
                    .progress = json.at("progress"),
                    .settings = json.at("settings"),
                    .units = {},
                    .states = {},
                    .files = {}};
  for (const Json& unit : json.at("units")) {
    manifest.units.push_back(unit_from(unit));
  }
  for (const Json& file : json.at("files")) {
    manifest.files.push_back(file_from(file));
  }
  for (const Json& state : json.at("states")) {
    manifest.states.push_back(state_from(state, manifest));
  }
  return manifest;
}

[[noreturn]] void refuse(const fs::path& file, const std::string& what) {
  throw Error(ErrorKind::kCheckpoint,
              fmt::format("{} {}\n  Go on from another checkpoint, or start a new run from its "
                          "weights.",
                          file.string(),
                          what));
}

// A file of another layout is told as such, whatever else it holds.
void require_layout(const Json& json, const fs::path& file) {
  const bool known = json.contains("layout") && json["layout"].is_number_integer();
  if (known && json["layout"] == kLayoutVersion) {
    return;
  }
  refuse(file,
         known ? fmt::format("has layout {}, and this version reads layout {}",
                             json["layout"].dump(),
                             kLayoutVersion)
               : "is not a checkpoint's list of contents");
}

void require_untouched(Json& json, const fs::path& file) {
  const Json said = json.contains(kChecksum) ? json[kChecksum] : Json();
  json.erase(kChecksum);
  if (said != formats::checksum_of(json.dump())) {
    refuse(file, "was changed after it was written: its checksum does not fit");
  }
}

}  // namespace

std::string moment_name(int index) {
  return fmt::format("moment_{}", index);
}

std::string state_file(std::int64_t rank, std::int64_t ranks) {
  return fmt::format("{}{:05}-of-{:05}.safetensors", kStateStart, rank, ranks);
}

bool is_state_file(std::string_view name) {
  return name.starts_with(kStateStart) && name.ends_with(".safetensors");
}

std::vector<std::string> files_of_rank(const std::filesystem::path& folder,
                                       std::int64_t rank,
                                       std::int64_t ranks) {
  const std::string own_state = state_file(rank, ranks);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with(kStateStart) ? name == own_state : rank == 0) {
      names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string tensor_name(const std::string& unit, const std::string& what, std::int64_t begin) {
  return fmt::format("{}/{}/{}", unit, what, begin);
}

std::int64_t UnitEntry::numel() const {
  std::int64_t total = 0;
  for (const ParameterEntry& parameter : parameters) {
    total += std::accumulate(
        parameter.shape.begin(), parameter.shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  return total;
}

FileEntry entry_of(const fs::path& folder, const std::string& name) {
  const fs::path path = folder / name;
  FileEntry entry{
      .name = name, .bytes = static_cast<std::int64_t>(fs::file_size(path)), .checksum = {}};
  if (path.extension() == ".safetensors") {
    entry.checksum = formats::SafetensorsFile(path).metadata().at(formats::kChecksumKey);
  } else {
    entry.checksum = formats::checksum_of(read_file(path, ErrorKind::kDisk));
  }
  return entry;
}

void write_manifest(const fs::path& folder, const Manifest& manifest) {
  Json json = to_json(manifest);
  json[kChecksum] = formats::checksum_of(json.dump());
  write_file_atomically(folder / kManifestFile, json.dump(1) + "\n");
}

Manifest read_manifest(const fs::path& folder) {
  const fs::path file = folder / kManifestFile;
  Json json = formats::parse_object(
      read_file(file, ErrorKind::kCheckpoint), file.string(), ErrorKind::kCheckpoint);
  require_layout(json, file);
  require_untouched(json, file);
  try {
    return manifest_from(json);
  } catch (const std::exception& fault) {
    refuse(file, fmt::format("does not hold what it should: {}", fault.what()));
  }
}

}  // namespace zeroth::checkpoint
