#include "formats/safetensors.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "formats/content_checksum.h"
#include "formats/mapped_file.h"
#include "formats/safetensors_header.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zeroth::formats {

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : TensorFile(path) {
  SafetensorsHeader header = parse_safetensors_header(bytes(), path.string());
  const std::span<const std::byte> buffer = bytes().subspan(header.buffer_begin);
  for (HeaderEntry& entry : header.entries) {
    add(std::move(entry.name),
        {.dtype = entry.dtype,
         .shape = std::move(entry.shape),
         .bytes = buffer.subspan(entry.begin, entry.end - entry.begin)});
  }
  set_metadata(std::move(header.metadata));
}

TensorBytes ready(std::span<const std::byte> bytes) {
  return [bytes] { return bytes; };
}

TensorToWrite to_write(const std::string& name, const TensorView& view) {
  return {.name = name, .dtype = view.dtype, .shape = view.shape, .bytes = ready(view.bytes)};
}

std::uint64_t size_to_write(const TensorToWrite& tensor) {
  const auto size = bytes_of_shape(tensor.shape, tensor.dtype);
  ZEROTH_CHECK(size.has_value(),
               "tensor {} of shape [{}] is too large",
               tensor.name,
               fmt::join(tensor.shape, ", "));
  return *size;
}

void sort_as_written(std::vector<TensorToWrite>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorToWrite& a, const TensorToWrite& b) {
    const std::size_t a_bytes = element_bytes(a.dtype);
    const std::size_t b_bytes = element_bytes(b.dtype);
    return std::tie(b_bytes, a.name) < std::tie(a_bytes, b.name);
  });
}

namespace {

void require_writable(const std::vector<TensorToWrite>& tensors) {
  std::map<std::string, int> count;
  for (const TensorToWrite& tensor : tensors) {
    ZEROTH_CHECK(++count[tensor.name] == 1, "tensor {} is given twice", tensor.name);
    ZEROTH_CHECK(tensor.name != "__metadata__", "a tensor may not be called __metadata__");
  }
}

// Built as text: the JSON type's object would be searched once for each key.
std::string header_text(const std::vector<TensorToWrite>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += fmt::format("\"__metadata__\":{},", Json(metadata).dump());
  }
  std::uint64_t begin = 0;
  for (const TensorToWrite& tensor : tensors) {
    const std::uint64_t end = begin + size_to_write(tensor);
    text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}},",
                        Json(tensor.name).dump(),
                        dtype_name(tensor.dtype),
                        fmt::join(tensor.shape, ","),
                        begin,
                        end);
    begin = end;
  }
  if (text.back() == ',') {
    text.pop_back();
  }
  text += '}';
  constexpr std::size_t kAlignment = 8;
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return text;
}

std::array<std::byte, kLengthBytes> length_bytes(std::size_t length) {
  std::array<std::byte, kLengthBytes> bytes{};
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    bytes[i] = static_cast<std::byte>(length >> (8 * i));
  }
  return bytes;
}

// Where the value of a metadata entry begins. Quotes within texts are escaped, so nothing else
// looks like the key.
std::size_t value_place(const std::string& header, const std::string& key) {
  const std::string before = fmt::format("{}:\"", Json(key).dump());
  const std::size_t place = header.find(before);
  ZEROTH_CHECK(place != std::string::npos, "no {} in the metadata", key);
  return place + before.size();
}

std::span<const std::byte> bytes_of(const TensorToWrite& tensor) {
  const std::span<const std::byte> bytes = tensor.bytes();
  ZEROTH_CHECK(bytes.size() == size_to_write(tensor),
               "tensor {} of shape [{}], {}: {} bytes are given",
               tensor.name,
               fmt::join(tensor.shape, ", "),
               dtype_name(tensor.dtype),
               bytes.size());
  return bytes;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path,
                       std::vector<TensorToWrite> tensors,
                       std::map<std::string, std::string> metadata,
                       const std::string& checksum_key) {
  require_writable(tensors);
  sort_as_written(tensors);
  if (!checksum_key.empty()) {
    metadata[checksum_key] = std::string(ContentChecksum::kDigits, '0');  // until it is known
  }
  const std::string header = header_text(tensors, metadata);
  AtomicFile file(path);
  file.append(length_bytes(header.size()));
  file.append(std::as_bytes(std::span(header)));
  ContentChecksum checksum;
  for (const TensorToWrite& tensor : tensors) {
    const std::span<const std::byte> bytes = bytes_of(tensor);
    if (!checksum_key.empty()) {
      checksum.add(tensor, bytes);
    }
    file.append(bytes);
  }
  if (!checksum_key.empty()) {
    const std::string value = checksum.hex();
    file.overwrite(kLengthBytes + value_place(header, checksum_key),
                   std::as_bytes(std::span(value)));
  }
  file.publish();
}

}  // namespace zeroth::formats
