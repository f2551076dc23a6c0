#pragma once

#include <string>

#include "config/dialect.h"
#include "config/document.h"
#include "config/given.h"

namespace zeroth::config {

// Takes in every leaf of a file: known ones become values, the others problems. Keys that begin
// with
// "_" are comments.
void gather(const Node& document,
            Dialect dialect,
            const std::string& file,
            Gathered& gathered,
            Problems& problems);

// The same of a file on the disk. `what`: "ds config". One that is not there or cannot be read is a
// problem.
void gather_file(const std::string& file,
                 const std::string& what,
                 Dialect dialect,
                 Gathered& gathered,
                 Problems& problems);

// The recipe, the Accelerate file and the ds_config.json that the command line and one another
// name. A file that is not there or cannot be read is a problem.
void gather_files(const std::string& recipe, Gathered& gathered, Problems& problems);

}  // namespace zeroth::config
