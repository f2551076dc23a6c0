#include "config/keys/deepspeed.h"

namespace zeroth::config {

Declarations deepspeed_keys() {
  return joined({deepspeed::zero_keys(),
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
                 deepspeed::tuning_keys()});
}

}  // namespace zeroth::config
