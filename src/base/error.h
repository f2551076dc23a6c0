#pragma once

#include "zeroth/error.h"  // for those who use the library as well
