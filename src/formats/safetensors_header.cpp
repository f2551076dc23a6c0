#include "formats/safetensors_header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <tuple>

#include "base/error.h"
#include "formats/strict_json.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zeroth::formats {
namespace {

constexpr const char* kFetchAgain = "Fetch or copy the file again.";

[[noreturn]] void fail(const std::string& source,
                       const std::string& what,
                       const char* mend = kFetchAgain) {
  throw Error(ErrorKind::kFormat, fmt::format("{}: {}\n  {}", source, what, mend));
}

[[noreturn]] void fail_truncated(const std::string& source,
                                 std::uint64_t announced,
                                 std::uint64_t present) {
  fail(source,
       fmt::format("the file is truncated: it announces {} bytes and has {}, {} bytes are missing",
                   announced,
                   present,
                   announced - present));
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::uint64_t header_length(std::span<const std::byte> file, const std::string& source) {
  if (as_text(file).starts_with("version https://git-lfs")) {
    fail(source,
         "this is a Git LFS pointer, not the weights",
         "Run \"git lfs pull\" in the model's folder.");
  }
  if (file.size() < kLengthBytes) {
    fail_truncated(source, kLengthBytes, file.size());
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  }
  if (length > kMaxHeaderBytes) {
    fail(source,
         fmt::format("not a safetensors file, or a damaged one: its header would be {} bytes long, "
                     "the limit is {}",
                     length,
                     kMaxHeaderBytes));
  }
  if (length > file.size() - kLengthBytes) {
    fail_truncated(source, kLengthBytes + length, file.size());
  }
  return length;
}

std::map<std::string, std::string> read_metadata(const SortedJson& object,
                                                 const std::string& source) {
  if (!object.is_object()) {
    fail(source, fmt::format("__metadata__ must be an object, is {}", object.type_name()));
  }
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) {
      fail(source,
           fmt::format("__metadata__ \"{}\" must be a string, is {}",
                       printable(key, 80),
                       value.type_name()));
    }
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

// One tensor's JSON with what names it in messages.
class EntryReader {
 public:
  EntryReader(const std::string& name, const SortedJson& fields, const std::string& source)
      : name_(name), fields_(fields), source_(source) {}

  [[nodiscard]] HeaderEntry read() const {
    require_known_fields();
    HeaderEntry entry{.name = name_, .dtype = dtype(), .shape = shape()};
    std::tie(entry.begin, entry.end) = offsets();
    require_size(entry);
    return entry;
  }

 private:
  [[noreturn]] void fail_tensor(const std::string& what) const {
    fail(source_, fmt::format("tensor \"{}\": {}", printable(name_, 120), what));
  }

  void require_known_fields() const {
    if (!fields_.is_object()) {
      fail_tensor(fmt::format("must be an object, is {}", fields_.type_name()));
    }
    for (const auto& [key, value] : fields_.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        fail_tensor(fmt::format("unknown field \"{}\"", printable(key, 80)));
      }
    }
  }

  [[nodiscard]] const SortedJson& field(const char* key) const {
    const auto found = fields_.find(key);
    if (found == fields_.end()) {
      fail_tensor(fmt::format("{} is missing", key));
    }
    return *found;
  }

  [[nodiscard]] DType dtype() const {
    const SortedJson& value = field("dtype");
    if (!value.is_string()) {
      fail_tensor(fmt::format("dtype must be a string, is {}", value.type_name()));
    }
    const auto& name = value.get_ref<const std::string&>();
    if (const auto dtype = dtype_from_name(name)) {
      return *dtype;
    }
    refuse_newer_dtype(name);
    fail_tensor(fmt::format("unknown dtype \"{}\"", printable(name, 40)));
  }

  void refuse_newer_dtype(const std::string& name) const {
    constexpr std::array<std::string_view, 7> kNewer{
        "F4", "F6_E2M3", "F6_E3M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "C64"};
    if (std::find(kNewer.begin(), kNewer.end(), name) != kNewer.end()) {
      throw Error(ErrorKind::kNotSupported,
                  fmt::format("{}: tensor \"{}\" has dtype {}, which Zeroth does not read\n"
                              "  Use a copy of the model saved in bfloat16, float16 or float32.",
                              source_,
                              printable(name_, 120),
                              name));
    }
  }

  [[nodiscard]] std::vector<std::int64_t> shape() const {
    std::vector<std::int64_t> sizes;
    for (const std::uint64_t size : naturals("shape")) {
      if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        fail_tensor(fmt::format("a size of {} in shape is too large", size));
      }
      sizes.push_back(static_cast<std::int64_t>(size));
    }
    return sizes;
  }

  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> offsets() const {
    const std::vector<std::uint64_t> values = naturals("data_offsets");
    if (values.size() != 2 || values[0] > values[1]) {
      fail_tensor(
          fmt::format("data_offsets [{}] is no range [begin, end]", fmt::join(values, ", ")));
    }
    return {values[0], values[1]};
  }

  [[nodiscard]] std::vector<std::uint64_t> naturals(const char* key) const {
    const SortedJson& value = field(key);
    if (!value.is_array()) {
      fail_tensor(fmt::format("{} must be a list, is {}", key, value.type_name()));
    }
    std::vector<std::uint64_t> numbers;
    for (const SortedJson& item : value) {
      if (!item.is_number_unsigned()) {
        fail_tensor(fmt::format(
            "{} must hold whole numbers from 0, has {}", key, printable(item.dump(), 40)));
      }
      numbers.push_back(item.get<std::uint64_t>());
    }
    return numbers;
  }

  void require_size(const HeaderEntry& entry) const {
    const auto needed = bytes_of_shape(entry.shape, entry.dtype);
    const std::string what =
        fmt::format("{} [{}]", dtype_name(entry.dtype), fmt::join(entry.shape, ", "));
    if (!needed) {
      fail_tensor(fmt::format("the size of {} overflows", what));
    }
    if (*needed != entry.end - entry.begin) {
      fail_tensor(fmt::format("{} takes {} bytes, data_offsets [{}, {}] give {}",
                              what,
                              *needed,
                              entry.begin,
                              entry.end,
                              entry.end - entry.begin));
    }
  }

  const std::string& name_;
  const SortedJson& fields_;
  const std::string& source_;
};

void require_tiling(const std::vector<HeaderEntry>& entries, const std::string& source) {
  std::uint64_t expected = 0;
  for (const HeaderEntry& entry : entries) {
    if (entry.begin != expected) {
      fail(source,
           fmt::format(
               "tensor \"{}\" begins at byte {} of the buffer, the one before it ends at {}: "
               "they {}",
               printable(entry.name, 120),
               entry.begin,
               expected,
               entry.begin < expected ? "overlap" : "leave a hole"));
    }
    expected = entry.end;
  }
}

void require_buffer_size(const SafetensorsHeader& header,
                         std::uint64_t file_bytes,
                         const std::string& source) {
  const std::uint64_t used = header.entries.empty() ? 0 : header.entries.back().end;
  const std::uint64_t present = file_bytes - header.buffer_begin;
  if (used > present) {
    fail_truncated(source, header.buffer_begin + used, file_bytes);
  }
  if (used < present) {
    fail(source,
         fmt::format("{} bytes follow the last tensor, which ends at byte {} of {}",
                     present - used,
                     header.buffer_begin + used,
                     file_bytes));
  }
}

}  // namespace

std::optional<std::uint64_t> bytes_of_shape(std::span<const std::int64_t> shape,
                                            DType dtype) noexcept {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t bytes = element_bytes(dtype);
  for (const std::int64_t size : shape) {
    const auto factor = static_cast<std::uint64_t>(size);
    if (factor != 0 && bytes > kMax / factor) {
      return std::nullopt;
    }
    bytes *= factor;
  }
  return bytes;
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& source) {
  const std::uint64_t length = header_length(file, source);
  const std::string_view text = as_text(file.subspan(kLengthBytes, length));
  if (!text.starts_with('{')) {
    fail(source, "not a safetensors file: its header does not start with \"{\"");
  }
  const SortedJson json =
      parse_table(text, fmt::format("{}: the header", source), ErrorKind::kFormat);
  SafetensorsHeader header;
  header.buffer_begin = kLengthBytes + length;
  for (const auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      header.metadata = read_metadata(value, source);
    } else {
      header.entries.push_back(EntryReader(name, value, source).read());
    }
  }
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  require_tiling(header.entries, source);
  require_buffer_size(header, file.size(), source);
  return header;
}

}  // namespace zeroth::formats
