#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/dtype.h"

// The state dictionaries that torch.save writes as `data.pkl`
// (https://docs.python.org/3/library/pickletools.html lists the opcodes, protocols 2 to 5;
// torch/serialization.py and torch/_utils.py say what the persistent ids and calls mean).
namespace zeroth::formats {

// A tensor as a state dictionary describes it: where it lies in its storage, in elements.
struct PickledTensor {
  std::string name;
  std::string storage;  // the record's key
  DType dtype = DType::kF32;
  std::int64_t storage_elements = 0;
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
};

// Reads a dictionary {name: tensor} without running anything: Python's pickle may call any
// function, here the few that build tensors are understood and every other name is refused
// (kNotSupported, by its name). A text that is cut or makes no sense is kFormat. `source` names the
// file in messages.
[[nodiscard]] std::vector<PickledTensor> read_state_dict(std::span<const std::byte> pickle,
                                                         const std::string& source);

}  // namespace zeroth::formats
