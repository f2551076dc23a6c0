#pragma once

#include "config/schema.h"

namespace zeroth::config {

// "auto" for sizes that follow from the model's hidden size (Transformers' integration of
// DeepSpeed): filled in where the model's config.json can be read.
void fill_from_model(Values& values);

}  // namespace zeroth::config
