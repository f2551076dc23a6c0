#pragma once

#include <cstdint>

#include "formats/safetensors.h"

// Whether weights are those that were written. Files that Zeroth wrote bring a checksum of their
// content; those of others bring none, and of them nothing can be said beyond the header's faults.
namespace zeroth::formats {

enum class ContentVerdict { kVerified, kDamaged, kNoChecksum };

// Reads every byte of a file that brings a checksum, and none of the tensors of another.
[[nodiscard]] ContentVerdict verdict_on(const TensorFile& file);

// kFormat, naming the file, where it is damaged.
void verify_content(const TensorFile& file);

// Every `of`-th of the files, beginning with number `part`. A host's ranks read the same files, and
// one reading of each tells all of them: beyond what the page cache holds, a second one would cost
// the disk's time once more. What is read is the mapping that is used afterwards, so nothing can
// change in between by a rename.
void verify_content(const ModelWeights& weights, std::int64_t part = 0, std::int64_t of = 1);

}  // namespace zeroth::formats
