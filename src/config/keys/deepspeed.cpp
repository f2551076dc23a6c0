#include "config/keys/deepspeed.h"

#include <iterator>

namespace zeroth::config {

Declarations deepspeed_keys() {
  Declarations joined;
  for (Declarations group : {deepspeed::zero_keys(),
                             deepspeed::offload_keys(),
                             deepspeed::precision_keys(),
                             deepspeed::optimizer_parameters(),
                             deepspeed::engine_keys(),
                             deepspeed::checkpoint_keys(),
                             deepspeed::monitoring_keys(),
                             deepspeed::parallelism_keys(),
                             deepspeed::compile_keys(),
                             deepspeed::data_efficiency_keys(),
                             deepspeed::compression_keys(),
                             deepspeed::tuning_keys()}) {
    joined.insert(
        joined.end(), std::make_move_iterator(group.begin()), std::make_move_iterator(group.end()));
  }
  return joined;
}

}  // namespace zeroth::config
