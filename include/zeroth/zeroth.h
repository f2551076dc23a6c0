#pragma once

// All of the library but zeroth/torch_module.h, which takes long to compile.
#include "zeroth/config.h"   // IWYU pragma: export
#include "zeroth/engine.h"   // IWYU pragma: export
#include "zeroth/error.h"    // IWYU pragma: export
#include "zeroth/model.h"    // IWYU pragma: export
#include "zeroth/runtime.h"  // IWYU pragma: export
