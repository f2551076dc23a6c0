#include "checkpoint/state_reader.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "formats/adapter.h"
#include "formats/checksum.h"
#include "formats/half.h"
#include "formats/mapped_file.h"
#include "formats/weights_writer.h"
#include <fmt/format.h>

namespace zeroth::checkpoint {
namespace {

namespace fs = std::filesystem;
using formats::TensorView;
using shard::Range;

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

[[noreturn]] void refuse_damaged(const fs::path& file, const std::string& what) {
  throw Error(ErrorKind::kCheckpoint,
              fmt::format("{} is damaged: {} is not what {} says\n  Go on from another checkpoint.",
                          file.string(),
                          what,
                          kManifestFile));
}

const std::string& file_of(const Manifest& manifest, const StateEntry& state) {
  return manifest.files[static_cast<std::size_t>(state.file)].name;
}

std::string name_of(const Manifest& manifest, const StateEntry& state) {
  const UnitEntry& unit = manifest.units[static_cast<std::size_t>(state.unit)];
  return tensor_name(unit.name, state.what, state.range.begin);
}

// Whether a StateReader trusts the file, or people do.
bool is_needed(const Manifest& manifest, std::size_t file) {
  const bool holds_state =
      std::any_of(manifest.states.begin(), manifest.states.end(), [&](const StateEntry& state) {
        return state.file == static_cast<std::int64_t>(file);
      });
  const bool weights = manifest.files[file].name.ends_with(".safetensors");
  return !holds_state && (!weights || manifest.master_in_result || manifest.only_weights());
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
    (void)tensor_of(state);
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
  for (const StateEntry* state : states_[{unit, what}]) {
    const Range part = shard::intersect(state->range, range);
    if (part.size() == 0) {
      continue;
    }
    const TensorView& view = proved(*state);
    copy(view, state->range, part, range, values);
    formats::drop_pages(view.bytes);  // no more stays in memory than what is being read
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
      formats::drop_pages(view.bytes);
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
    const formats::SafetensorsFile& adapter = file(formats::kAdapterWeightsFile);
    const std::string of_base = formats::kAdapterPrefix + formats::base_layer_name(parameter);
    return adapter.at(adapter.contains(of_base) ? of_base : formats::kAdapterPrefix + parameter);
  }
  if (model_ == nullptr) {
    model_ = std::make_unique<formats::ModelWeights>(folder_);
  }
  return model_->at(parameter);
}

void StateReader::read_ahead(std::int64_t unit, const std::string& what, Range range) {
  for (const StateEntry* state : states_[{unit, what}]) {
    if (shard::intersect(state->range, range).size() > 0) {
      formats::read_ahead(tensor_of(*state).bytes);
    }
  }
}

const TensorView& StateReader::tensor_of(const StateEntry& state) {
  return file(file_of(manifest_, state)).at(name_of(manifest_, state));
}

const TensorView& StateReader::proved(const StateEntry& state) {
  const TensorView& view = tensor_of(state);
  if (proved_.contains(&state)) {
    return view;
  }
  const std::string name = name_of(manifest_, state);
  require_numbers(view, state.range.size(), folder_, name);
  if (formats::checksum_of(view.bytes) != state.checksum) {
    refuse_damaged(folder_ / file_of(manifest_, state), "tensor " + name);
  }
  proved_.insert(&state);
  return view;
}

void verify_files(const fs::path& folder,
                  const Manifest& manifest,
                  std::int64_t part,
                  std::int64_t of,
                  Proof proof) {
  for (auto index = static_cast<std::size_t>(part); index < manifest.files.size();
       index += static_cast<std::size_t>(of)) {
    const FileEntry& file = manifest.files[index];
    const fs::path path = folder / file.name;
    const bool wanted = proof == Proof::kAll || is_needed(manifest, index);
    if (wanted && present_checksum(path) != file.checksum) {
      refuse_damaged(path, "its content");
    }
  }
}

}  // namespace zeroth::checkpoint
