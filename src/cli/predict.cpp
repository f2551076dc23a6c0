#include "cli/engine_run.h"

namespace zeroth::cli {

int run_predict(Arguments arguments) {
  return run_with_engine(config::Command::kPredict, arguments);
}

}  // namespace zeroth::cli
