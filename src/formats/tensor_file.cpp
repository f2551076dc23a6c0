#include "formats/tensor_file.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "formats/mapped_file.h"
#include <fmt/format.h>

namespace zeroth::formats {

struct TensorFile::State {
  explicit State(const std::filesystem::path& file_path) : path(file_path), file(file_path) {}

  std::filesystem::path path;
  MappedFile file;
  std::map<std::string, TensorView> tensors;
  std::map<std::string, std::string> metadata;
};

TensorFile::TensorFile(const std::filesystem::path& path) : state_(std::make_unique<State>(path)) {
}

TensorFile::~TensorFile() = default;
TensorFile::TensorFile(TensorFile&&) noexcept = default;
TensorFile& TensorFile::operator=(TensorFile&&) noexcept = default;

const std::filesystem::path& TensorFile::path() const noexcept {
  return state_->path;
}

const std::map<std::string, TensorView>& TensorFile::tensors() const noexcept {
  return state_->tensors;
}

const std::map<std::string, std::string>& TensorFile::metadata() const noexcept {
  return state_->metadata;
}

bool TensorFile::contains(const std::string& name) const {
  return state_->tensors.contains(name);
}

const TensorView& TensorFile::at(const std::string& name) const {
  const auto found = state_->tensors.find(name);
  if (found != state_->tensors.end()) {
    return found->second;
  }
  std::vector<std::string> names;
  for (const auto& [present, view] : state_->tensors) {
    names.push_back(present);
  }
  const std::vector<std::string> near = nearest(name, names);
  throw Error(ErrorKind::kModel,
              fmt::format("{} holds no tensor \"{}\"\n  Nearest of its {} names: {}",
                          path().string(),
                          name,
                          names.size(),
                          near.empty() ? "none is near" : join(near, ", ")));
}

std::span<const std::byte> TensorFile::bytes() const noexcept {
  return state_->file.bytes();
}

void TensorFile::add(std::string name, TensorView view) {
  state_->tensors.emplace(std::move(name), std::move(view));
}

void TensorFile::set_metadata(std::map<std::string, std::string> metadata) {
  state_->metadata = std::move(metadata);
}

}  // namespace zeroth::formats
