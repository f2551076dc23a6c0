#include "cli/rank_report.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include <fmt/format.h>
#include <sys/wait.h>

namespace zeroth::cli {
namespace {

int signal_of(const Child& child) {
  return WIFSIGNALED(*child.wait_status) ? WTERMSIG(*child.wait_status) : 0;
}

int code_of(const Child& child) {
  switch (const int signal = signal_of(child)) {
    case 0:
      return WEXITSTATUS(*child.wait_status);
    case SIGINT:
    case SIGTERM:
      return 128 + signal;
    case SIGKILL:
      return exit_code(ErrorKind::kMemory);
    default:
      return exit_code(ErrorKind::kInternal);
  }
}

// A program of the user's ends with what it says, or with its signal as in a shell.
int code_of(const Child& child, const RunEnd& end) {
  const int signal = signal_of(child);
  return end.of_user && signal != 0 ? 128 + signal : code_of(child);
}

// A rank that fails to hear from another names that one; it is not the cause.
const Child& cause_of(const std::vector<const Child*>& failed) {
  const auto own_fault = [](const Child* child) {
    return !child->put_down && code_of(*child) != exit_code(ErrorKind::kCommunication);
  };
  const auto found = std::find_if(failed.begin(), failed.end(), own_fault);
  return found == failed.end() ? *failed.front() : **found;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string names_of(const std::vector<const Child*>& children) {
  std::vector<std::int64_t> ranks;
  for (const Child* child : children) {
    ranks.push_back(child->rank);
  }
  std::sort(ranks.begin(), ranks.end());
  std::string names;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    names += i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ";
    names += std::to_string(ranks[i]);
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + names;
}

// What a rank of the user's program did not say itself.
std::string account_of_program(const Child& child) {
  const std::string activity = child.status.activity();
  const int signal = signal_of(child);
  return fmt::format("rank {} (process {}) {}{}",
                     child.rank,
                     child.process,
                     signal == 0
                         ? fmt::format("ended with code {}", code_of(child))
                         : fmt::format("died of signal {} ({})", signal, ::strsignal(signal)),
                     activity.empty() ? "" : fmt::format(", busy with {}", activity));
}

// What a rank could not say itself.
std::string account_of(const Child& child, std::int64_t world_size) {
  const std::string who = world_size == 1
                              ? "the worker"
                              : fmt::format("rank {} (process {})", child.rank, child.process);
  const std::string activity = child.status.activity();
  const std::string busy = activity.empty() ? "" : fmt::format(", busy with {}", activity);
  const int signal = signal_of(child);
  const int code = code_of(child);
  if (code == 128 + SIGINT || code == 128 + SIGTERM) {
    return fmt::format(
        "{} was stopped by {}{}", who, code == 128 + SIGINT ? "SIGINT" : "SIGTERM", busy);
  }
  if (signal == SIGKILL) {
    return fmt::format(
        "{}: {} was killed by signal 9 (out of memory?){}\n  Smaller rows or batches need less: "
        "--cutoff_len, --per_device_train_batch_size.",
        kind_name(ErrorKind::kMemory),
        who,
        busy);
  }
  const std::string how = signal == 0
                              ? fmt::format("ended with code {} and no word", code)
                              : fmt::format("died of signal {} ({})", signal, ::strsignal(signal));
  return fmt::format("{}: {} {}{}", kind_name(ErrorKind::kInternal), who, how, busy);
}

// What ranks that were started by a launcher say each for itself: rank 0 all, the others a line.
std::string alone_of_many(const Child& child, const std::string& failure) {
  return child.rank == 0 ? failure : fmt::format("rank {}: {}", child.rank, first_line(failure));
}

void tell_of_others(const std::vector<const Child*>& failed,
                    const Child& cause,
                    const std::string& failure) {
  std::vector<const Child*> stopped;
  std::vector<const Child*> killed;
  for (const Child* child : failed) {
    if (child->put_down) {
      killed.push_back(child);
    } else if (child != &cause && child->status.failure() != failure) {
      stopped.push_back(child);
    }
  }
  if (!stopped.empty()) {
    log::info(fmt::format(
        "{} stopped: {}", names_of(stopped), first_line(stopped.front()->status.failure())));
  }
  if (!killed.empty()) {
    log::info(fmt::format("{} did not end by itself and was killed", names_of(killed)));
  }
}

void tell_failure(const RunEnd& end, const Child& cause, const std::string& failure) {
  const bool met_by_all =
      static_cast<std::int64_t>(end.failed.size()) == end.started &&
      std::all_of(end.failed.begin(), end.failed.end(), [&](const Child* child) {
        return child->status.failure() == failure;
      });
  if (end.started < end.world_size) {
    log::info(alone_of_many(cause, failure));
  } else {
    log::info(met_by_all ? failure : fmt::format("rank {}: {}", cause.rank, failure));
  }
}

}  // namespace

int report_end(const RunEnd& end) {
  if (end.failed.empty()) {
    return 0;
  }
  const Child& cause = cause_of(end.failed);
  const std::string failure = cause.status.failure();
  const int code = code_of(cause, end);
  if (end.asked_to_stop && (code == 128 + SIGINT || code == 128 + SIGTERM)) {
    if (signal_of(cause) != 0 && !end.of_user) {  // the worker had not come to answering it
      log::info("stopped before the run began: nothing was written");
    }
    return code;
  }
  tell_of_others(end.failed, cause, failure);
  if (failure.empty()) {
    log::info(end.of_user ? account_of_program(cause) : account_of(cause, end.world_size));
  } else {
    tell_failure(end, cause, failure);
  }
  return code;
}

}  // namespace zeroth::cli
