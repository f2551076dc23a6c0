#pragma once

#include <cstdint>
#include <functional>
#include <string>

// A hook for tests of the product, without effect unless ZEROTH_TEST_STOP_AT is set to
// RANK:ACTIVITY[:HOW]. When that rank notes that activity, as messages name it ("reduction of
// update 2", "reading the data"), it
//   kill   is killed by SIGKILL (what is meant where HOW is not given),
//   exit   ends with code 1 and no word,
//   fail   meets an error of its own,
//   pause  sleeps for three seconds and goes on.
namespace zeroth::worker {

using TestStop = std::function<void(const std::string& activity)>;

// Empty where there is nothing to do for this rank. kUsage for a value that says nothing.
[[nodiscard]] TestStop test_stop(std::int64_t rank);

}  // namespace zeroth::worker
