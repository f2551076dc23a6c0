#pragma once

#include <filesystem>

#include "formats/tensor_file.h"

namespace zeroth::formats {

// A state dictionary that torch.save wrote (PyTorch 1.6 and later: a ZIP archive of data.pkl and
// one record for each storage), mapped; nothing in it is ever run. Faults are Errors of kFormat;
// what is sound and not read (the older format, big-endian files, tensors that are views with gaps)
// is kNotSupported, each with the file and the tensor's name.
class TorchFile : public TensorFile {
 public:
  explicit TorchFile(const std::filesystem::path& path);
};

}  // namespace zeroth::formats
