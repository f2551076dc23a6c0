// The engine's program. People start `zeroth`, which hands the resolved configuration over in an
// inherited file.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "worker/commands.h"
#include "worker/ranks.h"
#include "worker/signals.h"
#include <fmt/format.h>
#include <malloc.h>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

namespace {

using zeroth::Error;
using zeroth::ErrorKind;
using zeroth::config::Command;
using zeroth::config::RunConfig;

// Which rank this process is; known once the configuration is read.
std::int64_t speaking_rank = 0;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

RunConfig read_config(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--config-fd") != 0) {
    throw Error(ErrorKind::kUsage, "zeroth-worker is started by zeroth; run `zeroth --help`");
  }
  const std::string path = fmt::format("/proc/self/fd/{}", std::atoi(argv[2]));
  const std::string text = zeroth::read_file(path, ErrorKind::kInternal);
  return zeroth::config::from_json(
      zeroth::parse_json(text, "the front's configuration", ErrorKind::kInternal));
}

// A step allocates and frees the same tensors again and again. Given back to the system each time,
// their pages would have to be cleared anew; kept, they are there. The largest threshold that glibc
// takes is 32 MiB.
void keep_freed_memory() {
  constexpr int kMiB = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, 32 * kMiB);
  ::mallopt(M_TRIM_THRESHOLD, 1024 * kMiB);
  ::mallopt(M_TOP_PAD, 64 * kMiB);
}

using RankCommand = void (*)(const RunConfig&, const zeroth::worker::CommPtr&);

// A rank that fails says why to the others, so that none of them waits or wonders.
void run_as_rank(RankCommand command, const RunConfig& config) {
  const zeroth::worker::CommPtr comm = zeroth::worker::join_ranks(config);
  try {
    command(config, comm);
  } catch (const std::exception& error) {
    comm->abort(error.what());
    throw;
  }
}

void run(const RunConfig& config) {
  keep_freed_memory();
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  at::set_num_threads(static_cast<int>(
      config.threads > 0 ? config.threads
                         : std::max<std::int64_t>(1, cores / config.batch.world_size)));
  switch (config.command) {
    case Command::kTrain:
      return run_as_rank(zeroth::worker::run_train, config);
    case Command::kEval:
      return run_as_rank(zeroth::worker::run_eval, config);
    case Command::kPredict:
      return run_as_rank(zeroth::worker::run_predict, config);
    case Command::kInitModel:
      return zeroth::worker::run_init_model(config);
    case Command::kTokenize:
    case Command::kTrainTokenizer:
      break;
  }
  throw Error(ErrorKind::kInternal, "the front does this command itself");
}

// Rank 0 tells all; the others name themselves in one line, for what they meet is mostly the same.
int report(ErrorKind kind, const std::string& message) {
  const bool whole = speaking_rank == 0;
  zeroth::log::always(whole ? fmt::format("{}: {}", zeroth::kind_name(kind), message)
                            : fmt::format("rank {}: {}: {}",
                                          speaking_rank,
                                          zeroth::kind_name(kind),
                                          message.substr(0, message.find('\n'))));
  return zeroth::exit_code(kind);
}

int report_no_memory() {
  return report(ErrorKind::kMemory,
                "no memory is left\n  Less is needed with smaller --cutoff_len, "
                "--per_device_train_batch_size, --per_device_eval_batch_size or --lora_rank.");
}

// LibTorch tells that memory ran out in words alone.
int report_tensor_error(const c10::Error& error) {
  const std::string what = error.what_without_backtrace();
  const bool no_memory = what.find("can't allocate memory") != std::string::npos ||
                         what.find("not enough memory") != std::string::npos ||
                         what.find("Storage size calculation overflowed") != std::string::npos;
  return no_memory ? report_no_memory() : report(ErrorKind::kInternal, what);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const RunConfig config = read_config(argc, argv);
    speaking_rank = config.launch.rank;
    zeroth::worker::answer_signals(config.command, speaking_rank == 0);
    run(config);
    return 0;
  } catch (const Error& error) {
    return report(error.kind(), error.what());
  } catch (const c10::Error& error) {
    return report_tensor_error(error);
  } catch (const std::bad_alloc&) {
    return report_no_memory();
  } catch (const std::exception& error) {
    return report(ErrorKind::kInternal, error.what());
  }
}
