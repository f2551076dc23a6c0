#include "formats/zip_records.h"

#include <array>
#include <memory>
#include <string_view>

#include "base/error.h"
#include <fmt/format.h>
#include <minizip/unzip.h>

namespace zeroth::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 1024;
constexpr unsigned long kEncrypted = 1;

class Archive {
 public:
  explicit Archive(const fs::path& path) : path_(path), file_(::unzOpen64(path.c_str())) {
    if (file_ == nullptr) {
      fail("its directory cannot be read");
    }
  }

  ~Archive() { ::unzClose(file_); }

  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  std::map<std::string, ZipRecord> records() {
    std::map<std::string, ZipRecord> records;
    int status = ::unzGoToFirstFile(file_);
    for (; status == UNZ_OK; status = ::unzGoToNextFile(file_)) {
      std::string name;
      const ZipRecord record = current(name);
      if (!records.emplace(name, record).second) {
        fail(name + " stands in it twice");
      }
    }
    if (status != UNZ_END_OF_LIST_OF_FILE) {
      fail("its directory is damaged");
    }
    return records;
  }

 private:
  ZipRecord current(std::string& name) {
    std::array<char, kLongestName> text{};
    unz_file_info64 info{};
    if (::unzGetCurrentFileInfo64(
            file_, &info, text.data(), text.size() - 1, nullptr, 0, nullptr, 0) != UNZ_OK) {
      fail("its directory is damaged");
    }
    name = text.data();
    if (info.compression_method != 0 || info.compressed_size != info.uncompressed_size ||
        (info.flag & kEncrypted) != 0) {
      fail(name + " is compressed or encrypted, which PyTorch does not do");
    }
    if (::unzOpenCurrentFile(file_) != UNZ_OK) {
      fail(name + " is not where the directory says");
    }
    const ZipRecord record{.begin = ::unzGetCurrentFileZStreamPos64(file_),
                           .size = info.uncompressed_size};
    ::unzCloseCurrentFile(file_);
    return record;
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw Error(
        ErrorKind::kFormat,
        fmt::format(
            "{} is no sound ZIP archive: {}\n  Fetch the file again.", path_.string(), what));
  }

  fs::path path_;
  unzFile file_;
};

}  // namespace

std::map<std::string, ZipRecord> zip_records(const fs::path& path) {
  return Archive(path).records();
}

}  // namespace zeroth::formats
