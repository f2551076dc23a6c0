#include "cli/engine_run.h"

namespace zeroth::cli {

int run_eval(Arguments arguments) {
  return run_with_engine(config::Command::kEval, arguments);
}

}  // namespace zeroth::cli
