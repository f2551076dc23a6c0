#include "formats/torch_file.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "formats/pickle.h"
#include "formats/safetensors_header.h"
#include "formats/strict_json.h"
#include "formats/zip_records.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zeroth::formats {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kMostPickle = std::size_t{16} << 20;
constexpr std::size_t kShownName = 120;
constexpr std::string_view kPickleName = "/data.pkl";

bool begins_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(), [](char a, std::byte b) {
           return static_cast<std::byte>(a) == b;
         });
}

void require_archive(Bytes file, const std::string& source) {
  if (begins_with(file, "\x80\x02")) {
    throw Error(ErrorKind::kNotSupported,
                source +
                    " is in the format of PyTorch before 1.6, which is not read\n  Load it with "
                    "PyTorch and save it again, best as safetensors.");
  }
  if (!begins_with(file, "PK\x03\x04")) {
    throw Error(ErrorKind::kFormat,
                source +
                    " is no file of torch.save: it does not begin as a ZIP archive does\n"
                    "  Fetch the file again (a pointer of Git LFS is a small text).");
  }
}

class Reader {
 public:
  Reader(const std::filesystem::path& path, Bytes file)
      : source_(path.string()), file_(file), records_(checked_records(path)) {}

  // For each tensor: its description and where it lies.
  template <typename Take>
  void read(const Take& take) const {
    const std::string folder = archive_folder();
    require_little_endian(folder);
    const Bytes pickle = record(folder + std::string(kPickleName.substr(1)));
    if (pickle.size() > kMostPickle) {
      fail("data.pkl is larger than that of any model");
    }
    for (const PickledTensor& tensor : read_state_dict(pickle, source_)) {
      take(tensor, bytes_of(tensor, record(folder + "data/" + tensor.storage)));
    }
  }

 private:
  std::map<std::string, ZipRecord> checked_records(const std::filesystem::path& path) const {
    require_archive(file_, source_);
    return zip_records(path);
  }

  // The archive's own name stands before each record's: "pytorch_model/data.pkl".
  [[nodiscard]] std::string archive_folder() const {
    for (const auto& [name, record] : records_) {
      if (name.ends_with(kPickleName)) {
        return name.substr(0, name.size() - kPickleName.size() + 1);
      }
    }
    fail("it has no data.pkl");
  }

  void require_little_endian(const std::string& folder) const {
    if (records_.contains(folder + "byteorder") &&
        !begins_with(record(folder + "byteorder"), "little")) {
      throw Error(ErrorKind::kNotSupported,
                  source_ +
                      " was written on a big-endian machine, which is not read\n"
                      "  Load it with PyTorch and save it as safetensors.");
    }
  }

  [[nodiscard]] Bytes record(const std::string& name) const {
    const auto found = records_.find(name);
    if (found == records_.end()) {
      fail(fmt::format("its record {} is missing", printable(name, kShownName)));
    }
    const ZipRecord& at = found->second;
    if (at.begin > file_.size() || at.size > file_.size() - at.begin) {
      fail(fmt::format("its record {} ends beyond the file", printable(name, kShownName)));
    }
    return file_.subspan(at.begin, at.size);
  }

  [[nodiscard]] Bytes bytes_of(const PickledTensor& tensor, Bytes storage) const {
    const auto name = printable(tensor.name, kShownName);
    const auto size = bytes_of_shape(tensor.shape, tensor.dtype);
    const auto width = static_cast<std::uint64_t>(element_bytes(tensor.dtype));
    const bool sound =
        size && tensor.offset >= 0 && tensor.storage_elements >= 0 && storage.size() % width == 0 &&
        storage.size() / width == static_cast<std::uint64_t>(tensor.storage_elements) &&
        static_cast<std::uint64_t>(tensor.offset) <= storage.size() / width &&
        *size <= storage.size() - width * static_cast<std::uint64_t>(tensor.offset);
    if (!sound) {
      fail(fmt::format("{} [{}] from element {} on does not fit its storage of {} bytes",
                       name,
                       fmt::join(tensor.shape, ", "),
                       tensor.offset,
                       storage.size()));
    }
    if (!lies_row_by_row(tensor)) {
      throw Error(
          ErrorKind::kNotSupported,
          fmt::format("{}: {} [{}] is a view with strides [{}], which is not read\n  Save it "
                      "with .contiguous(), or as safetensors.",
                      source_,
                      name,
                      fmt::join(tensor.shape, ", "),
                      fmt::join(tensor.strides, ", ")));
    }
    return storage.subspan(width * static_cast<std::uint64_t>(tensor.offset), *size);
  }

  // Strides of dimensions with one element mean nothing.
  static bool lies_row_by_row(const PickledTensor& tensor) {
    std::int64_t expected = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
      if (tensor.shape[i] == 0) {
        return true;
      }
      if (tensor.shape[i] != 1 && tensor.strides[i] != expected) {
        return false;
      }
      expected *= tensor.shape[i];
    }
    return true;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::kFormat,
                fmt::format("{} is damaged: {}\n  Fetch the file again.", source_, what));
  }

  std::string source_;
  Bytes file_;
  std::map<std::string, ZipRecord> records_;
};

}  // namespace

TorchFile::TorchFile(const std::filesystem::path& path) : TensorFile(path) {
  Reader(path, bytes()).read([this](const PickledTensor& tensor, Bytes bytes) {
    add(tensor.name, {.dtype = tensor.dtype, .shape = tensor.shape, .bytes = bytes});
  });
}

}  // namespace zeroth::formats
