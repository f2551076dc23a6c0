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

void run(const RunConfig& config) {
  keep_freed_memory();
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  at::set_num_threads(static_cast<int>(
      config.threads > 0 ? config.threads
                         : std::max<std::int64_t>(1, cores / config.batch.world_size)));
  switch (config.command) {
    case Command::kTrain:
      return zeroth::worker::run_train(config, zeroth::worker::join_ranks(config));
    case Command::kEval:
      return zeroth::worker::run_eval(config, zeroth::worker::join_ranks(config));
    case Command::kPredict:
      return zeroth::worker::run_predict(config, zeroth::worker::join_ranks(config));
    case Command::kInitModel:
      return zeroth::worker::run_init_model(config);
    case Command::kTokenize:
    case Command::kTrainTokenizer:
      break;
  }
  throw Error(ErrorKind::kInternal, "the front does this command itself");
}

int report(ErrorKind kind, const std::string& message) {
  zeroth::log::info(fmt::format("{}: {}", zeroth::kind_name(kind), message));
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
    zeroth::worker::answer_signals(config.command);
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
