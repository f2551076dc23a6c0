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
std::atomic<bool> requests_are_kept{false};
std::atomic<int> stop_asked{0};  // the signal
std::atomic<bool> save_asked{false};

// write(2) alone is allowed in a handler.
void say(const char* text) noexcept {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

void stop(int signal) {
  int nobody = 0;
  if (requests_are_kept && stop_asked.compare_exchange_strong(nobody, signal)) {
    if (speaks_for_run) {
      say(signal == SIGINT ? "\nSIGINT" : "\nSIGTERM");
      say(": this update is finished and saved, then the run ends; a second signal ends it at "
          "once\n");
    }
    return;
  }
  if (speaks_for_run) {
    say(signal == SIGINT ? "\nstopped by SIGINT: " : "\nstopped by SIGTERM: ");
    say(lost_words.load());
  }
  ::_exit(128 + signal);
}

void save(int /*signal*/) {
  save_asked = requests_are_kept.load();
  if (speaks_for_run) {
    say(save_asked ? "SIGUSR1: a checkpoint is written after this update, and the run goes on\n"
                   : "SIGUSR1: nothing is there to save now; the run goes on\n");
  }
}

const char* words_for(config::Command command) noexcept {
  switch (command) {
    case config::Command::kTrain:
      return "nothing is saved now; a checkpoint that stands is gone on from with "
             "--resume_from_checkpoint latest\n";
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
  install(SIGUSR1, save);
  sigset_t held;  // by the front, until here
  sigemptyset(&held);
  sigaddset(&held, SIGUSR1);
  ::sigprocmask(SIG_UNBLOCK, &held, nullptr);
}

KeptRequests::KeptRequests() {
  requests_are_kept = true;
}

KeptRequests::~KeptRequests() {
  requests_are_kept = false;
}

train::Request KeptRequests::take() {
  return {.save = save_asked.exchange(false), .stop = stop_asked};
}

}  // namespace zeroth::worker
