#include "formats/fingerprint.h"

#include <algorithm>
#include <span>

#include "formats/checksum.h"
#include "formats/content_checksum.h"
#include "formats/mapped_file.h"

namespace zeroth::formats {
namespace {

constexpr std::size_t kSampleBytes = 4096;

// Of a file mapped: a page at the front, one in the middle, one at the end.
std::string sample_of(std::span<const std::byte> bytes) {
  const PickedPages picked(bytes);
  std::string sample;
  const std::size_t length = std::min(kSampleBytes, bytes.size());
  for (const std::size_t begin :
       {std::size_t{0}, (bytes.size() - length) / 2, bytes.size() - length}) {
    const auto part = bytes.subspan(begin, length);
    sample.append(reinterpret_cast<const char*>(part.data()), part.size());
  }
  return sample;
}

std::string text_of(const ModelConfig& config) {
  Json json = config.raw;
  for (const char* about_itself : {"_name_or_path", "transformers_version"}) {
    json.erase(about_itself);
  }
  return nlohmann::json::parse(json.dump()).dump();  // in the order of names
}

}  // namespace

std::string model_fingerprint(const ModelConfig& config, const ModelWeights& weights) {
  ContentChecksum checksum;
  for (const std::string& name : weights.names()) {
    const TensorView& view = weights.at(name);
    const std::string sample = sample_of(view.bytes);
    checksum.add(to_write(name, view), std::as_bytes(std::span(sample)));
  }
  return checksum_of(text_of(config) + checksum.hex());
}

}  // namespace zeroth::formats
