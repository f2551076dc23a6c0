#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/dtype.h"

namespace zeroth::formats {

struct TensorView {
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;   // row-major
  std::span<const std::byte> bytes;  // borrowed from the file; may be unaligned for its type
};

// A file of named tensors, mapped read-only, whatever its format. Views stay valid as long as the
// object, or the one it was moved to, lives.
class TensorFile {
 public:
  ~TensorFile();
  TensorFile(TensorFile&&) noexcept;
  TensorFile& operator=(TensorFile&&) noexcept;

  [[nodiscard]] const std::filesystem::path& path() const noexcept;
  [[nodiscard]] const std::map<std::string, TensorView>& tensors() const noexcept;
  // What a safetensors file says beside its tensors; empty for other formats.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept;
  [[nodiscard]] bool contains(const std::string& name) const;
  [[nodiscard]] const TensorView& at(
      const std::string& name) const;  // kModel naming file and nearest names

 protected:
  // Maps the file; a format's constructor says what is in it.
  explicit TensorFile(const std::filesystem::path& path);
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
  void add(std::string name, TensorView view);
  void set_metadata(std::map<std::string, std::string> metadata);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zeroth::formats
