#pragma once

#include "base/worker_status.h"

namespace zeroth::worker {

// A file that is mapped may be cut, or its disk may fail, while the run reads it: the system then
// sends SIGBUS. From now on that ends the process with a message that names the file, and the code
// of disk errors. SIGBUS for any other reason does what it always does. `status` must live as long
// as the process reads files.
void answer_lost_files(const WorkerStatus& status);

}  // namespace zeroth::worker
