#include "worker/signals.h"

#include <atomic>
#include <csignal>
#include <cstring>

#include <unistd.h>

namespace zeroth::worker {
namespace {

// Read by a signal handler: a pointer to a literal, nothing more.
std::atomic<const char*> lost_words{""};
std::atomic<bool> speaks_for_run{true};  // one rank answers for all

// write(2) alone is allowed in a handler.
void say(const char* text) noexcept {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

void stop(int signal) {
  if (speaks_for_run) {
    say(signal == SIGINT ? "\nstopped by SIGINT: " : "\nstopped by SIGTERM: ");
    say(lost_words.load());
  }
  ::_exit(128 + signal);
}

void decline(int /*signal*/) {
  if (speaks_for_run) {
    say("SIGUSR1: saving on request is not built yet; the run goes on\n");
  }
}

const char* words_for(config::Command command) noexcept {
  switch (command) {
    case config::Command::kTrain:
      return "weights are saved at the end of a run only (checkpoints are not built yet), so none "
             "were kept; metrics.jsonl has the updates that were made\n";
    case config::Command::kPredict:
      return "generated_predictions.jsonl has the rows that were finished\n";
    default:
      return "nothing was written\n";
  }
}

void install(int signal, void (*handler)(int)) {
  struct sigaction action {};

  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void answer_signals(config::Command command, bool speaks) {
  lost_words = words_for(command);
  speaks_for_run = speaks;
  install(SIGINT, stop);
  install(SIGTERM, stop);
  install(SIGUSR1, decline);
}

}  // namespace zeroth::worker
