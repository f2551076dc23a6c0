#include "train/checkpoint_load.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "checkpoint/state_reader.h"
#include "comm/gather_texts.h"
#include "formats/checksum.h"
#include "train/trainer_state.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ATen/ops/empty.h>

namespace zeroth::train {
namespace {

namespace fs = std::filesystem;
using checkpoint::Manifest;
using checkpoint::UnitEntry;
using shard::Range;
using zero::UnitState;

constexpr std::int64_t kPieceElements = std::int64_t{4} << 20;  // read at one time

[[noreturn]] void refuse(const std::string& what, const std::string& mend) {
  throw Error(ErrorKind::kCheckpoint, what + "\n  " + mend);
}

Manifest read_as_rank(const fs::path& folder, std::int64_t rank) {
  try {
    return checkpoint::read_manifest(folder);
  } catch (const Error& error) {
    if (rank == 0) {
      throw;
    }
    throw Error(error.kind(),
                fmt::format("rank {} cannot read the checkpoint {} that rank 0 chose: {}",
                            rank,
                            folder.string(),
                            error.what()));
  }
}

// Two hosts may see two disks under one path.
void require_one_content(const fs::path& folder, comm::Communicator& comm) {
  const std::string mine =
      formats::checksum_of(read_file(folder / checkpoint::kManifestFile, ErrorKind::kCheckpoint));
  const auto all = comm::gather_texts(comm, "checkpoint", mine);
  const auto other = std::find_if(
      all.begin(), all.end(), [&](const std::string& checksum) { return checksum != all[0]; });
  if (other != all.end()) {
    refuse(fmt::format("rank {} finds another checkpoint in {} than rank 0",
                       other - all.begin(),
                       folder.string()),
           "Every host needs the same files: put output_dir where all see it.");
  }
}

// The parameters of `unit` that `other` has not, the first of them by name.
std::string beyond(const UnitEntry& unit, const UnitEntry& other) {
  constexpr std::size_t kListed = 3;
  std::vector<std::string> names;
  for (const checkpoint::ParameterEntry& parameter : unit.parameters) {
    if (std::find(other.parameters.begin(), other.parameters.end(), parameter) ==
        other.parameters.end()) {
      names.push_back(fmt::format("{} [{}]", parameter.name, fmt::join(parameter.shape, ", ")));
    }
  }
  const std::size_t rest = names.size() > kListed ? names.size() - kListed : 0;
  names.resize(names.size() - rest);
  return (names.empty() ? "nothing more" : join(names, ", ")) +
         (rest == 0 ? "" : fmt::format(" and {} more", rest));
}

void require_same_units(const OpenCheckpoint& checkpoint, engine::Engine& engine) {
  const std::vector<UnitEntry> present = unit_entries(engine);
  const std::vector<UnitEntry>& saved = checkpoint.manifest.units;
  const auto [theirs, ours] =
      std::mismatch(saved.begin(), saved.end(), present.begin(), present.end());
  if (theirs == saved.end() && ours == present.end()) {
    return;
  }
  const UnitEntry none;
  const UnitEntry& there = theirs == saved.end() ? none : *theirs;
  const UnitEntry& here = ours == present.end() ? none : *ours;
  refuse(
      fmt::format("{} trains other parameters than this run\n  in {} it has {}\n  this run has {}",
                  checkpoint.folder.string(),
                  there.name.empty() ? here.name : there.name,
                  beyond(there, here),
                  beyond(here, there)),
      "Give the settings of that run (finetuning_type, lora_rank, lora_target; its "
      "effective_config.json has them), or start a new run from its weights.");
}

// put(index of the piece's first element in the unit, values) for each piece of what this rank's
// optimizer holds.
template <typename Put>
void for_each_own_piece(const UnitState& unit, const Put& put) {
  const Range own = shard::intersect(unit.own_range(), {.begin = 0, .end = unit.layout().numel()});
  for (std::int64_t begin = own.begin; begin < own.end; begin += kPieceElements) {
    put(Range{.begin = begin, .end = std::min(own.end, begin + kPieceElements)});
  }
}

at::Tensor read(checkpoint::StateReader& reader,
                std::size_t unit,
                const std::string& what,
                Range range) {
  at::Tensor values = at::empty({range.size()}, at::kFloat);
  reader.read(static_cast<std::int64_t>(unit),
              what,
              range,
              {values.data_ptr<float>(), static_cast<std::size_t>(range.size())});
  return values;
}

// What a unit's part of a checkpoint consists of.
std::vector<std::string> kinds_to_load(int num_moments) {
  std::vector<std::string> kinds{checkpoint::kMaster};
  for (int moment = 0; moment < num_moments; ++moment) {
    kinds.push_back(checkpoint::moment_name(moment));
  }
  return kinds;
}

void set_own(UnitState& unit, std::size_t kind, Range range, const at::Tensor& values) {
  if (kind == 0) {
    unit.set_own_master(range, values);
  } else {
    unit.set_own_moment(static_cast<int>(kind) - 1, range, values);
  }
}

void load_units(checkpoint::StateReader& reader, engine::Engine& engine, int num_moments) {
  const std::vector<std::string> kinds = kinds_to_load(num_moments);
  std::vector<UnitState>& units = engine.units();
  const auto for_each = [&](const auto& visit) {
    for (std::size_t index = 0; index < units.size(); ++index) {
      for (std::size_t kind = 0; units[index].trains() && kind < kinds.size(); ++kind) {
        for_each_own_piece(units[index], [&](Range range) { visit(index, kind, range); });
      }
    }
  };
  for_each([&](std::size_t index, std::size_t kind, Range range) {
    reader.read_ahead(static_cast<std::int64_t>(index), kinds[kind], range);
  });
  for_each([&](std::size_t index, std::size_t kind, Range range) {
    set_own(units[index], kind, range, read(reader, index, kinds[kind], range));
  });
  for (UnitState& unit : units) {
    unit.finish_update();
  }
}

// All that is there, and then the values. The ranks share the proof of what is not read by
// stretches.
void prove_and_load(const OpenCheckpoint& checkpoint, engine::Engine& engine, int num_moments) {
  const comm::Communicator& comm = engine.comm();
  checkpoint::StateReader reader(checkpoint.folder, checkpoint.manifest);
  reader.require_tensors();
  checkpoint::verify_files(checkpoint.folder,
                           checkpoint.manifest,
                           comm.rank(),
                           comm.size(),
                           checkpoint::Proof::kForReading);
  engine.comm().barrier("check of the checkpoint");
  load_units(reader, engine, num_moments);
}

// Whether --allow says so; then people are told what they allowed.
bool goes_on(const config::RunConfig& config, const std::string& key, const std::string& what) {
  const auto& allowed = config.resume.allowed;
  if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
    return false;
  }
  log::warn(fmt::format("{} than the checkpoint's (--allow {})", what, key));
  return true;
}

Json history_of(const fs::path& folder) {
  const Json state = parse_json(read_file(folder / kTrainerStateFile, ErrorKind::kCheckpoint),
                                (folder / kTrainerStateFile).string(),
                                ErrorKind::kCheckpoint);
  return state.contains("log_history") ? state["log_history"] : Json::array();
}

}  // namespace

OpenCheckpoint open_weights(const fs::path& folder, comm::Communicator& comm) {
  const fs::path chosen = comm::gather_texts(comm, "choice of the checkpoint", folder.string())[0];
  OpenCheckpoint checkpoint{
      .folder = chosen, .manifest = read_as_rank(chosen, comm.rank()), .progress = {}};
  require_one_content(chosen, comm);
  const std::string fault = checkpoint::fault_of(chosen, checkpoint.manifest);
  if (!fault.empty()) {
    refuse(fmt::format("nothing can go on from {}: {}", chosen.string(), fault),
           "Give another checkpoint.");
  }
  return checkpoint;
}

OpenCheckpoint open_checkpoint(const fs::path& folder, comm::Communicator& comm) {
  OpenCheckpoint checkpoint = open_weights(folder, comm);
  const std::string where = checkpoint.folder.string();
  if (checkpoint.manifest.only_weights()) {
    refuse(fmt::format("{} holds weights alone (it was written with save_only_model): the "
                       "optimizer's state and the place in the rows are not there",
                       where),
           checkpoint.manifest.adapter ? "Start a new run from its weights: --adapter_name_or_path."
                                       : "Start a new run from its weights: --model_name_or_path.");
  }
  checkpoint.progress = progress_from(checkpoint.manifest.progress, where);
  checkpoint.progress.log_history = history_of(checkpoint.folder);
  return checkpoint;
}

void require_same_inputs(const OpenCheckpoint& checkpoint,
                         const Fingerprints& present,
                         const config::RunConfig& config) {
  const Manifest& manifest = checkpoint.manifest;
  if (manifest.model_fingerprint != present.model &&
      !goes_on(config, "model_name_or_path", "the model is another one")) {
    refuse(fmt::format("{} belongs to another model than --model_name_or_path {} (fingerprint {}, "
                       "here {})",
                       checkpoint.folder.string(),
                       config.model.model_name_or_path,
                       manifest.model_fingerprint,
                       present.model),
           "Give the model that the run began with, or --allow model_name_or_path if you mean it.");
  }
  if (manifest.data_fingerprint != present.data &&
      !goes_on(config, "dataset", "the training rows are others")) {
    refuse(fmt::format("{} was made with other training rows (fingerprint {}, here {})",
                       checkpoint.folder.string(),
                       manifest.data_fingerprint,
                       present.data),
           "Give the same files, template and lengths, or --allow dataset to go on with these "
           "rows.");
  }
}

void load_checkpoint(const OpenCheckpoint& checkpoint, engine::Engine& engine) {
  require_same_units(checkpoint, engine);
  const int saved = checkpoint.manifest.num_moments;
  if (saved != engine.num_moments()) {
    refuse(fmt::format("{} has {} moments of each parameter, and this run's optimizer has {}",
                       checkpoint.folder.string(),
                       saved,
                       engine.num_moments()),
           "Give the optimizer of that run (--optim), or start a new run from its weights.");
  }
  prove_and_load(checkpoint, engine, engine.num_moments());
  engine.set_position(checkpoint.progress.engine);
}

void load_weights(const OpenCheckpoint& checkpoint, engine::Engine& engine) {
  require_same_units(checkpoint, engine);
  prove_and_load(checkpoint, engine, 0);
}

}  // namespace zeroth::train
