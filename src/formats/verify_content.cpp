#include "formats/verify_content.h"

#include "base/error.h"
#include "formats/weights_writer.h"
#include <fmt/format.h>

namespace zeroth::formats {

ContentVerdict verdict_on(const TensorFile& file) {
  const auto written = file.metadata().find(kChecksumKey);
  if (written == file.metadata().end()) {
    return ContentVerdict::kNoChecksum;
  }
  return content_checksum(file) == written->second ? ContentVerdict::kVerified
                                                   : ContentVerdict::kDamaged;
}

void verify_content(const TensorFile& file) {
  if (verdict_on(file) == ContentVerdict::kDamaged) {
    throw Error(ErrorKind::kFormat,
                fmt::format("{} is damaged: its content does not fit the checksum that was written "
                            "with it ({} {})\n  Copy it again from where it is whole, or go on "
                            "from another save.",
                            file.path().string(),
                            kChecksumKey,
                            file.metadata().at(kChecksumKey)));
  }
}

void verify_content(const ModelWeights& weights, std::int64_t part, std::int64_t of) {
  const auto step = static_cast<std::size_t>(of);
  for (auto i = static_cast<std::size_t>(part); i < weights.files().size(); i += step) {
    verify_content(weights.files()[i]);
  }
}

}  // namespace zeroth::formats
