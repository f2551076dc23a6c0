#include "cli/engine_run.h"

namespace zeroth::cli {

int run_train(Arguments arguments) {
  return run_with_engine(config::Command::kTrain, arguments);
}

}  // namespace zeroth::cli
