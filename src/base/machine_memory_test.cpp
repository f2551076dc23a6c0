#include "base/machine_memory.h"

#include <gtest/gtest.h>

namespace zeroth {
namespace {

TEST(MachineMemory, WhatIsAvailableIsAPartOfIt) {
  EXPECT_GT(available_memory(), 0);
  EXPECT_LE(available_memory(), machine_memory());
}

}  // namespace
}  // namespace zeroth
