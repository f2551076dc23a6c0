#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/safetensors.h"
#include "models/model.h"

// The tiny models of tests/golden/families: one of each family, with random weights that are made
// again here and not stored.
namespace zeroth::parity {

[[nodiscard]] const std::vector<std::string>& golden_families();

// Of families.json: seed, configs, variants.
[[nodiscard]] const Json& about_family(const std::string& family);

// A model folder of its own, which goes with it.
class FamilyFolder {
 public:
  explicit FamilyFolder(const std::string& family);
  ~FamilyFolder();
  FamilyFolder(const FamilyFolder&) = delete;
  FamilyFolder& operator=(const FamilyFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  // Another config beside config.json.
  [[nodiscard]] std::filesystem::path write_config(const std::string& name,
                                                   const Json& config) const;

 private:
  void write_weights() const;

  std::string family_;
  std::filesystem::path path_;
};

}  // namespace zeroth::parity
