#include "parity/family_folders.h"

#include <map>

#include "base/file.h"
#include "formats/weights_writer.h"
#include "parity/support.h"
#include "shapes/families.h"
#include <unistd.h>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace zeroth::parity {
namespace {

namespace fs = std::filesystem;

const Json& facts() {
  static const Json facts =
      parse_json(read_file(golden() / "families/families.json", ErrorKind::kData),
                 "families.json",
                 ErrorKind::kData);
  return facts;
}

}  // namespace

const std::vector<std::string>& golden_families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [name, about] : facts().items()) {
      all.push_back(name);
    }
    return all;
  }();
  return names;
}

const Json& about_family(const std::string& family) {
  return facts().at(family);
}

FamilyFolder::FamilyFolder(const std::string& family)
    : family_(family),
      path_(fs::temp_directory_path() / ("zeroth_" + family + "_" + std::to_string(getpid()))) {
  fs::create_directories(path_);
  (void)write_config("config.json", about_family(family)["configs"]["config.json"]);
  write_weights();
}

FamilyFolder::~FamilyFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path FamilyFolder::write_config(const std::string& name, const Json& config) const {
  write_file_atomically(path_ / name, config.dump());
  return path_ / name;
}

// Normal numbers times 0.2 in the order of the names, as Transformers' models were filled; norms
// around 1, or 0 for those that multiply by 1 + weight.
void FamilyFolder::write_weights() const {
  const Json& about = about_family(family_);
  std::map<std::string, at::Tensor> weights;
  for (const auto& unit :
       shapes::model_shape(shapes::read_model_config(path_ / "config.json")).units) {
    for (const auto& parameter : unit.parameters) {
      weights[parameter.name] = at::empty(parameter.shape);
    }
  }
  at::Generator generator = at::detail::createCPUGenerator(about["seed"].get<std::uint64_t>());
  std::vector<formats::TensorToWrite> tensors;
  for (auto& [name, weight] : weights) {
    weight = 0.2 * at::randn(weight.sizes(), generator);
    if (name.ends_with("norm.weight")) {
      weight += about["norms_around"].get<double>();
    }
    const std::span bytes(static_cast<const std::byte*>(weight.data_ptr()), weight.nbytes());
    tensors.push_back({.name = name,
                       .dtype = formats::DType::kF32,
                       .shape = weight.sizes().vec(),
                       .bytes = formats::ready(bytes)});
  }
  (void)formats::write_model_weights(path_, tensors);
}

}  // namespace zeroth::parity
