#include "train/result.h"

#include <functional>
#include <numeric>

#include "train/engine_options.h"
#include "train/save_result.h"

namespace zeroth::train {

at::ScalarType result_dtype(const Trained& trained) {
  const config::ZeroSettings& zero = trained.config.zero;
  const bool wide =
      trained.adapter || (zero.stage == 3 && !zero.gather_16bit_on_save.value_or(true));
  return wide ? at::kFloat : compute_dtype(trained.config);
}

std::int64_t result_bytes(const Trained& trained) {
  std::int64_t numbers = 0;
  for (const shapes::SavedTensor& saved : trained.model.lora.saved) {
    numbers += std::accumulate(
        saved.shape.begin(), saved.shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  numbers = trained.adapter ? numbers : trained.model.num_parameters();
  return numbers * static_cast<std::int64_t>(c10::elementSize(result_dtype(trained)));
}

std::vector<std::filesystem::path> save_result(const Trained& trained,
                                               const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files =
      trained.adapter ? save_adapter(folder, trained.model, trained.engine, *trained.adapter)
                      : save_model(folder, trained.model, trained.engine, result_dtype(trained));
  if (trained.engine.comm().rank() != 0) {
    return {};
  }
  const auto companions = write_companions(trained.companions, folder);
  files.insert(files.end(), companions.begin(), companions.end());
  return files;
}

}  // namespace zeroth::train
