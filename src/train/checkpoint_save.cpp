#include "train/checkpoint_save.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/folder.h"
#include "comm/gather_texts.h"
#include "config/report.h"
#include "config/saving_rules.h"
#include "formats/checksum.h"
#include "formats/weights_writer.h"
#include "observe/progress.h"
#include "train/save_result.h"
#include "train/trainer_state.h"
#include <fmt/format.h>

namespace zeroth::train {
namespace {

namespace fs = std::filesystem;
using checkpoint::FileEntry;
using checkpoint::Manifest;
using checkpoint::state_file;
using checkpoint::StateEntry;
using checkpoint::UnitEntry;
using formats::TensorToWrite;
using shard::Range;
using zero::UnitState;

// Of one tensor of a state file: a rank holds one at a time.
constexpr std::int64_t kPieceElements = std::int64_t{4} << 20;

// What rank `rank` writes of a unit: its shard without the padding, at every stage.
Range written_by(const UnitState& unit, std::int64_t rank) {
  return shard::intersect(unit.layout().shard(rank), {.begin = 0, .end = unit.layout().numel()});
}

bool master_in_result(const Trained& trained) {
  return result_dtype(trained) == at::kFloat;
}

std::vector<std::string> kinds_of_state(const Trained& trained) {
  std::vector<std::string> kinds;
  if (!master_in_result(trained)) {
    kinds.emplace_back(checkpoint::kMaster);
  }
  for (int moment = 0; moment < trained.engine.num_moments(); ++moment) {
    kinds.push_back(checkpoint::moment_name(moment));
  }
  return kinds;
}

// visit(index of the unit, kind index, range) for each tensor of a rank's state file.
template <typename Visit>
void for_each_state(const Trained& trained, std::int64_t rank, const Visit& visit) {
  const std::size_t kinds = kinds_of_state(trained).size();
  const std::vector<UnitState>& units = trained.engine.units();
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    if (!units[unit].trains()) {
      continue;
    }
    const Range own = written_by(units[unit], rank);
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      for (std::int64_t begin = own.begin; begin < own.end; begin += kPieceElements) {
        visit(unit, kind, Range{.begin = begin, .end = std::min(own.end, begin + kPieceElements)});
      }
    }
  }
}

at::Tensor state_values(const Trained& trained,
                        const UnitState& unit,
                        std::size_t kind,
                        Range range) {
  const int first_moment = master_in_result(trained) ? 0 : 1;
  const int moment = static_cast<int>(kind) - first_moment;
  return moment < 0 ? unit.own_master(range) : unit.own_moment(moment, range);
}

// This rank's part, and what stands in it. Each tensor's bytes are made when its turn comes.
std::vector<StateEntry> write_state(const Trained& trained, const fs::path& folder) {
  const comm::Communicator& comm = trained.engine.comm();
  const std::vector<std::string> kinds = kinds_of_state(trained);
  std::vector<StateEntry> entries;
  for_each_state(trained, comm.rank(), [&](std::size_t unit, std::size_t kind, Range range) {
    entries.push_back({.unit = static_cast<std::int64_t>(unit),
                       .what = kinds[kind],
                       .range = range,
                       .file = 0,
                       .checksum = {}});
  });
  std::vector<TensorToWrite> tensors;
  at::Tensor held;
  std::size_t at = 0;
  for_each_state(trained, comm.rank(), [&](std::size_t index, std::size_t kind, Range range) {
    const UnitState& unit = trained.engine.units()[index];
    StateEntry& entry = entries[at++];
    tensors.push_back({.name = checkpoint::tensor_name(unit.unit().name(), entry.what, range.begin),
                       .dtype = formats::DType::kF32,
                       .shape = {range.size()},
                       .bytes = [&trained, &unit, &held, &entry, kind, range] {
                         held = at::Tensor();
                         held = state_values(trained, unit, kind, range);
                         const std::span<const std::byte> bytes(
                             static_cast<const std::byte*>(held.data_ptr()), held.nbytes());
                         entry.checksum = formats::checksum_of(bytes);
                         return bytes;
                       }});
  });
  if (!tensors.empty()) {
    formats::write_weights_file(folder / state_file(comm.rank(), comm.size()), tensors);
  }
  return entries;
}

// What a rank has written.
struct Written {
  std::vector<FileEntry> files;
  std::vector<StateEntry> states;
};

Json to_json(const Written& written) {
  Json files = Json::array();
  for (const FileEntry& file : written.files) {
    files.push_back({file.name, file.bytes, file.checksum});
  }
  Json states = Json::array();
  for (const StateEntry& state : written.states) {
    states.push_back({state.unit, state.what, state.range.begin, state.range.end, state.checksum});
  }
  return {{"files", std::move(files)}, {"states", std::move(states)}};
}

// Of all ranks, at every rank.
Written gather(comm::Communicator& comm, const Written& mine) {
  const auto texts = comm::gather_texts(comm, "files of the checkpoint", to_json(mine).dump());
  Written all;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const Json json = Json::parse(texts[rank]);
    const std::string own_state = state_file(static_cast<std::int64_t>(rank), comm.size());
    std::int64_t of_states = 0;
    for (const Json& file : json["files"]) {
      of_states = file[0] == own_state ? static_cast<std::int64_t>(all.files.size()) : of_states;
      all.files.push_back({.name = file[0], .bytes = file[1], .checksum = file[2]});
    }
    for (const Json& state : json["states"]) {
      all.states.push_back({.unit = state[0],
                            .what = state[1],
                            .range = {.begin = state[2], .end = state[3]},
                            .file = of_states,
                            .checksum = state[4]});
    }
  }
  return all;
}

Manifest manifest_of(const Trained& trained,
                     const Progress& progress,
                     const Fingerprints& fingerprints,
                     Written written) {
  const bool whole = !trained.config.saving.only_model;
  return {.update = progress.engine.updates,
          .ranks = trained.engine.comm().size(),
          .zero_stage = trained.config.zero.stage,
          .adapter = trained.adapter.has_value(),
          .master_in_result = master_in_result(trained),
          .num_moments = trained.engine.num_moments(),
          .model_fingerprint = fingerprints.model,
          .data_fingerprint = fingerprints.data,
          .progress = whole ? to_json(progress) : Json::object(),
          .settings = config::settings_to_keep(trained.config),
          .units = unit_entries(trained.engine),
          .states = std::move(written.states),
          .files = std::move(written.files)};
}

void require_room(const Trained& trained, const fs::path& output) {
  const std::int64_t needed = checkpoint_bytes(trained);
  std::error_code error;
  const auto free = static_cast<std::int64_t>(fs::space(output, error).available);
  if (error) {
    throw Error(
        ErrorKind::kDisk,
        fmt::format("output_dir {} cannot be reached any more: {}\n  See to its disk, and go "
                    "on from the last checkpoint: --resume_from_checkpoint latest.",
                    output.string(),
                    error.message()));
  }
  if (needed > free) {
    throw Error(ErrorKind::kDisk,
                fmt::format("a checkpoint takes {} and the disk of output_dir {} has {} left\n  "
                            "Earlier checkpoints are as they were. Free some space, or keep fewer: "
                            "--save_total_limit; then --resume_from_checkpoint latest goes on.",
                            observe::bytes_text(needed),
                            output.string(),
                            observe::bytes_text(free)));
  }
}

// The tokenizer's files, and lists that grow with the model.
std::int64_t small_files_bytes(const Trained& trained) {
  constexpr std::int64_t kLists = 64 * 1024;
  constexpr std::int64_t kOfATensor = 256;
  std::int64_t bytes = kLists;
  for (const auto& unit : trained.model.units) {
    bytes += kOfATensor * static_cast<std::int64_t>(unit->parameters().size());
  }
  for (const Companion& companion : trained.companions) {
    bytes += companion.bytes();
  }
  return bytes;
}

// What rank 0 writes beside the result.
void write_records(const Trained& trained, const Progress& progress, const fs::path& folder) {
  write_trainer_state(folder, trained.config, progress);
  write_file_atomically(folder / "effective_config.json",
                        config::effective_config(trained.config).dump(2) + "\n");
}

}  // namespace

std::vector<UnitEntry> unit_entries(engine::Engine& engine) {
  std::vector<UnitEntry> entries;
  for (const UnitState& unit : engine.units()) {
    UnitEntry entry{.name = unit.unit().name(), .parameters = {}};
    for (const models::Parameter* parameter : unit.trainable()) {
      entry.parameters.push_back({.name = parameter->name, .shape = parameter->sizes()});
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::int64_t checkpoint_bytes(const Trained& trained) {
  const auto kinds = static_cast<std::int64_t>(
      trained.config.saving.only_model ? 0 : kinds_of_state(trained).size());
  return result_bytes(trained) + small_files_bytes(trained) +
         trained.model.num_trainable() * kinds * static_cast<std::int64_t>(sizeof(float));
}

fs::path save_checkpoint(const Trained& trained,
                         const Progress& progress,
                         const Fingerprints& fingerprints) {
  comm::Communicator& comm = trained.engine.comm();
  const fs::path output = trained.config.output.output_dir;
  const std::int64_t update = progress.engine.updates;
  const fs::path folder = checkpoint::partial_folder(output, update);
  const bool leads = comm.rank() == 0;
  if (leads) {
    require_room(trained, output);
    checkpoint::begin_writing(output, update);
  }
  comm.barrier("folder of the checkpoint");
  Written mine;
  if (!trained.config.saving.only_model) {
    mine.states = write_state(trained, folder);
  }
  save_result(trained, folder);
  if (leads) {
    write_records(trained, progress, folder);
  }
  for (const std::string& name : checkpoint::files_of_rank(folder, comm.rank(), comm.size())) {
    mine.files.push_back(checkpoint::entry_of(folder, name));
  }
  Written all = gather(comm, mine);
  if (leads) {
    checkpoint::write_manifest(folder,
                               manifest_of(trained, progress, fingerprints, std::move(all)));
    checkpoint::publish(output, update);
  }
  comm.barrier("end of the checkpoint");
  return output / checkpoint::folder_name(update);
}

}  // namespace zeroth::train
