#include "checkpoint/state_reader.h"

#include "base/error.h"
#include "base/file.h"
#include "formats/checksum.h"
#include "formats/half.h"
#include "formats/weights_writer.h"
#include <fmt/format.h>

namespace zeroth::checkpoint {
namespace {

namespace fs = std::filesystem;
using formats::TensorView;
using shard::Range;

constexpr auto kAdapterFile = "adapter_model.safetensors";
constexpr auto kAdapterPrefix = "base_model.model.";

// Elements of `part` out of a tensor that holds `stored` of the same numbering, in fp32.
void copy(const TensorView& view, Range stored, Range part, Range wanted, std::span<float> values) {
  formats::copy_as_float(view,
                         part.begin - stored.begin,
                         values.subspan(static_cast<std::size_t>(part.begin - wanted.begin),
                                        static_cast<std::size_t>(part.size())));
}

[[noreturn]] void refuse_tensor(const fs::path& folder, const std::string& name) {
  throw Error(ErrorKind::kCheckpoint,
              fmt::format("tensor {} in {} is not what {} says of it\n  Go on from another "
                          "checkpoint.",
                          name,
                          folder.string(),
                          kManifestFile));
}

void require_numbers(const TensorView& view,
                     std::int64_t count,
                     const fs::path& folder,
                     const std::string& name) {
  const auto width = static_cast<std::int64_t>(formats::element_bytes(view.dtype));
  if (!formats::is_weight_dtype(view.dtype) ||
      view.bytes.size() != static_cast<std::size_t>(count * width)) {
    refuse_tensor(folder, name);
  }
}

std::string present_checksum(const fs::path& path) {
  return path.extension() == ".safetensors"
             ? formats::content_checksum(formats::SafetensorsFile(path))
             : formats::checksum_of(read_file(path, ErrorKind::kCheckpoint));
}

}  // namespace

StateReader::StateReader(fs::path folder, const Manifest& manifest)
    : folder_(std::move(folder)), manifest_(manifest) {
  for (const StateEntry& state : manifest.states) {
    states_[{state.unit, state.what}].push_back(&state);
  }
}

void StateReader::read(std::int64_t unit,
                       const std::string& what,
                       Range range,
                       std::span<float> values) {
  const bool in_result =
      what == kMaster && (manifest_.master_in_result || manifest_.only_weights());
  const std::int64_t copied = in_result ? copy_from_result(unit, range, values)
                                        : copy_from_states(unit, what, range, values);
  if (copied != range.size()) {
    throw Error(ErrorKind::kCheckpoint,
                fmt::format("{} holds {} of {} elements of {} of {}\n  Go on from another "
                            "checkpoint.",
                            folder_.string(),
                            copied,
                            range.size(),
                            what,
                            manifest_.units.at(static_cast<std::size_t>(unit)).name));
  }
}

void StateReader::require_tensors() {
  for (const StateEntry& state : manifest_.states) {
    const std::string& unit = manifest_.units[static_cast<std::size_t>(state.unit)].name;
    const std::string& name = manifest_.files[static_cast<std::size_t>(state.file)].name;
    (void)file(name).at(tensor_name(unit, state.what, state.range.begin));
  }
  for (const UnitEntry& unit : manifest_.units) {
    for (const ParameterEntry& parameter : unit.parameters) {
      (void)result_tensor(parameter.name);
    }
  }
}

std::int64_t StateReader::copy_from_states(std::int64_t unit,
                                           const std::string& what,
                                           Range range,
                                           std::span<float> values) {
  std::int64_t copied = 0;
  const std::string& unit_name = manifest_.units.at(static_cast<std::size_t>(unit)).name;
  for (const StateEntry* state : states_[{unit, what}]) {
    const Range part = shard::intersect(state->range, range);
    if (part.size() == 0) {
      continue;
    }
    const std::string name = tensor_name(unit_name, what, state->range.begin);
    const TensorView& view =
        file(manifest_.files[static_cast<std::size_t>(state->file)].name).at(name);
    require_numbers(view, state->range.size(), folder_, name);
    copy(view, state->range, part, range, values);
    copied += part.size();
  }
  return copied;
}

std::int64_t StateReader::copy_from_result(std::int64_t unit,
                                           Range range,
                                           std::span<float> values) {
  std::int64_t copied = 0;
  std::int64_t begin = 0;
  for (const ParameterEntry& parameter :
       manifest_.units.at(static_cast<std::size_t>(unit)).parameters) {
    const std::int64_t count = UnitEntry{.name = {}, .parameters = {parameter}}.numel();
    const Range stored{.begin = begin, .end = begin + count};
    begin = stored.end;
    const Range part = shard::intersect(stored, range);
    if (part.size() > 0) {
      const TensorView& view = result_tensor(parameter.name);
      require_numbers(view, count, folder_, parameter.name);
      copy(view, stored, part, range, values);
      copied += part.size();
    }
  }
  return copied;
}

const formats::SafetensorsFile& StateReader::file(const std::string& name) {
  const auto found = files_.find(name);
  return found != files_.end()
             ? found->second
             : files_.emplace(name, formats::SafetensorsFile(folder_ / name)).first->second;
}

const TensorView& StateReader::result_tensor(const std::string& parameter) {
  if (manifest_.adapter) {
    return file(kAdapterFile).at(kAdapterPrefix + parameter);
  }
  if (model_ == nullptr) {
    model_ = std::make_unique<formats::ModelWeights>(folder_);
  }
  return model_->at(parameter);
}

void verify_files(const fs::path& folder,
                  const Manifest& manifest,
                  std::int64_t part,
                  std::int64_t of) {
  for (auto index = static_cast<std::size_t>(part); index < manifest.files.size();
       index += static_cast<std::size_t>(of)) {
    const FileEntry& file = manifest.files[index];
    const fs::path path = folder / file.name;
    if (present_checksum(path) != file.checksum) {
      throw Error(
          ErrorKind::kCheckpoint,
          fmt::format("{} is damaged: its content is not what {} says\n  Go on from another "
                      "checkpoint.",
                      path.string(),
                      kManifestFile));
    }
  }
}

}  // namespace zeroth::checkpoint
