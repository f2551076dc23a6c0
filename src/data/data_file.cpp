#include "data/data_file.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/gzip.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

constexpr std::string_view kUtf8Mark = "\xef\xbb\xbf";

std::string lower_extension(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return extension;
}

FileFormat format_of(const std::filesystem::path& path) {
  const std::string extension = lower_extension(path);
  if (extension == ".gz" && path.stem().has_extension()) {
    return format_of(path.stem());
  }
  if (extension == ".csv") {
    return FileFormat::kCsv;
  }
  if (extension == ".json") {
    return FileFormat::kJson;
  }
  if (extension == ".jsonl") {
    return FileFormat::kJsonLines;
  }
  if (extension == ".txt") {
    return FileFormat::kPlainText;
  }
  throw Error(
      ErrorKind::kNotSupported,
      fmt::format(
          "{}: {} is not supported as a data file\n  Convert it to .json (an array of "
          "objects), .jsonl (one object a line) or .csv; .txt serves --stage pt. Each may be "
          "packed by gzip.",
          path.string(),
          extension.empty() ? "a name without extension" : "\"" + extension + "\""));
}

void require_file(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) {
    throw Error(ErrorKind::kData,
                fmt::format("there is no data file {}\n  Check the name; a relative one "
                            "starts from {}.",
                            path.string(),
                            std::filesystem::current_path().string()));
  }
  if (std::filesystem::is_directory(path)) {
    throw Error(
        ErrorKind::kNotSupported,
        fmt::format(
            "{} is a folder; folders of data are not supported\n  Name its files, separated "
            "by commas.",
            path.string()));
  }
}

bool is_utf16(std::string_view content) {
  return content.starts_with("\xff\xfe") || content.starts_with("\xfe\xff");
}

}  // namespace

std::string_view DataFile::text() const noexcept {
  std::string_view text = content;
  if (text.starts_with(kUtf8Mark)) {
    text.remove_prefix(kUtf8Mark.size());
  }
  return text;
}

DataFile open_data_file(const std::filesystem::path& path) {
  require_file(path);
  DataFile file{.path = &path, .format = format_of(path), .content = {}};
  file.content = read_file(path, ErrorKind::kData);
  if (is_gzip(file.content)) {
    file.content = unpacked(file.content, path);
  }
  if (is_utf16(file.content)) {
    throw Error(ErrorKind::kData,
                fmt::format("{} is UTF-16\n  Convert it: iconv -f UTF-16 -t UTF-8 {} > ...",
                            path.string(),
                            path.filename().string()));
  }
  if (trim(file.text()).empty()) {
    throw Error(ErrorKind::kData,
                fmt::format("{} is empty ({} bytes, no rows)\n  Check that it was written "
                            "completely.",
                            path.string(),
                            file.content.size()));
  }
  return file;
}

}  // namespace zeroth::data
