// The engine's program. People start `zeroth`, which hands the resolved configuration over in an
// inherited file.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/worker_status.h"
#include "engine/processors.h"
#include "kernels/choice.h"
#include "memory/tensor_error.h"
#include "worker/commands.h"
#include "worker/lost_file.h"
#include "worker/ranks.h"
#include "worker/signals.h"
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

namespace {

using zeroth::Error;
using zeroth::ErrorKind;
using zeroth::config::Command;
using zeroth::config::RunConfig;

// What the front has handed over: descriptors of the configuration and of the status that it reads
// when this process has ended.
struct Inherited {
  int config = -1;
  int status = -1;
};

Inherited inherited(int argc, char** argv) {
  if (argc != 5 || std::strcmp(argv[1], "--config-fd") != 0 ||
      std::strcmp(argv[3], "--status-fd") != 0) {
    throw Error(ErrorKind::kUsage, "zeroth-worker is started by zeroth; run `zeroth --help`");
  }
  return {.config = std::atoi(argv[2]), .status = std::atoi(argv[4])};
}

RunConfig read_config(int descriptor) {
  const std::string path = fmt::format("/proc/self/fd/{}", descriptor);
  const std::string text = zeroth::read_file(path, ErrorKind::kInternal);
  return zeroth::config::from_json(
      zeroth::parse_json(text, "the front's configuration", ErrorKind::kInternal));
}

// A step allocates and frees the same tensors again and again. Given back to the system each time,
// their pages would have to be cleared anew; kept, they are there. So none is mapped by itself, and
// the heap never shrinks.
void keep_freed_memory() {
  constexpr int kMiB = 1 << 20;
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  ::mallopt(M_TOP_PAD, 64 * kMiB);
}

using RankCommand = int (*)(const RunConfig&, const zeroth::worker::CommPtr&);

using Status = std::optional<zeroth::WorkerStatus>;

// The front tells people, once and last. Gives the code to end with.
int report(Status& status, ErrorKind kind, const std::string& message) {
  const std::string text = fmt::format("{}: {}", zeroth::kind_name(kind), message);
  if (!status || !status->set_failure(text)) {
    zeroth::log::always(text);
  }
  return zeroth::exit_code(kind);
}

// A rank that fails says why to the others, so that none of them waits or wonders.
int run_as_rank(RankCommand command, const RunConfig& config, Status& status) {
  const zeroth::worker::RankHooks hooks{
      .activity = [&status](const std::string& activity) { status->set_activity(activity); },
      .give_up =
          [&status](const Error& error) { ::_exit(report(status, error.kind(), error.what())); }};
  const zeroth::worker::CommPtr comm = zeroth::worker::join_ranks(config, hooks);
  try {
    zeroth::engine::share_processors(*comm, config.threads);
    return command(config, comm);
  } catch (const std::exception& error) {
    comm->abort(error.what());
    throw;
  }
}

// A command that gives no exit code of its own.
template <auto kCommand>
int done(const RunConfig& config, const zeroth::worker::CommPtr& comm) {
  kCommand(config, comm);
  return 0;
}

// What needs no ranks has the whole machine.
int run_alone(void (*command)(const RunConfig&), const RunConfig& config) {
  at::set_num_threads(static_cast<int>(
      config.threads > 0 ? config.threads
                         : static_cast<std::int64_t>(std::thread::hardware_concurrency())));
  command(config);
  return 0;
}

int run(const RunConfig& config, Status& status) {
  keep_freed_memory();
  const bool fast = config.kernels == zeroth::config::KernelChoice::kAuto;
  zeroth::kernels::set_choice(fast ? zeroth::kernels::Choice::kAuto
                                   : zeroth::kernels::Choice::kReference);
  switch (config.command) {
    case Command::kTrain:
      return run_as_rank(zeroth::worker::run_train, config, status);
    case Command::kEval:
      return run_as_rank(done<zeroth::worker::run_eval>, config, status);
    case Command::kPredict:
      return run_as_rank(done<zeroth::worker::run_predict>, config, status);
    case Command::kBench:
      return run_as_rank(done<zeroth::worker::run_bench>, config, status);
    case Command::kInitModel:
      return run_alone(zeroth::worker::run_init_model, config);
    case Command::kExport:
      return run_alone(zeroth::worker::run_export, config);
    default:
      break;
  }
  throw Error(ErrorKind::kInternal, "the front does this command itself");
}

int report_no_memory(Status& status) {
  return report(status,
                ErrorKind::kMemory,
                "no memory is left\n  Less is needed with smaller --cutoff_len, "
                "--per_device_train_batch_size, --per_device_eval_batch_size or --lora_rank.");
}

int report_tensor_error(Status& status, const c10::Error& error) {
  const std::string what = error.what_without_backtrace();
  return zeroth::memory::says_out_of_memory(what) ? report_no_memory(status)
                                                  : report(status, ErrorKind::kInternal, what);
}

}  // namespace

int main(int argc, char** argv) {
  Status status;
  try {
    const Inherited descriptors = inherited(argc, argv);
    status.emplace(zeroth::WorkerStatus::open(descriptors.status));
    const RunConfig config = read_config(descriptors.config);
    zeroth::worker::answer_signals(config.command, config.launch.rank == 0);
    zeroth::worker::answer_lost_files(*status);
    return run(config, status);
  } catch (const Error& error) {
    return report(status, error.kind(), error.what());
  } catch (const c10::Error& error) {
    return report_tensor_error(status, error);
  } catch (const std::bad_alloc&) {
    return report_no_memory(status);
  } catch (const std::exception& error) {
    return report(status, ErrorKind::kInternal, error.what());
  }
}
