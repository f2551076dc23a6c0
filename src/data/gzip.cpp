#include "data/gzip.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include <fmt/format.h>
#include <zlib.h>

namespace zeroth::data {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, std::string_view problem) {
  throw Error(
      ErrorKind::kData,
      fmt::format(
          "{}: {}\n  Check it with gzip -t, or copy the file once more.", path.string(), problem));
}

// zlib's state, ended with its owner.
class Inflater {
 public:
  explicit Inflater(const std::filesystem::path& path) : path_(path) {
    constexpr int kGzipAlone = 16 + MAX_WBITS;
    if (::inflateInit2(&stream_, kGzipAlone) != Z_OK) {
      throw Error(ErrorKind::kMemory, "no memory to unpack " + path.string());
    }
  }

  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  ~Inflater() { ::inflateEnd(&stream_); }

  // Unpacks one member into `text`, and returns what lies behind it.
  std::string_view unpack_member(std::string_view content, std::string& text) {
    ::inflateReset(&stream_);
    std::size_t given = 0;
    int state = Z_OK;
    while (state != Z_STREAM_END) {
      if (stream_.avail_in == 0) {
        given += feed(content.substr(given));
      }
      state = step(text);
      if (state != Z_OK && state != Z_STREAM_END) {
        refuse(path_,
               state == Z_BUF_ERROR ? "the gzip data ends too early" : "the gzip data is broken");
      }
    }
    const std::size_t used = given - stream_.avail_in;
    stream_.avail_in = 0;
    return content.substr(used);
  }

 private:
  std::size_t feed(std::string_view rest) {
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    const std::size_t count = std::min(rest.size(), kMost);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
    stream_.avail_in = static_cast<uInt>(count);
    return count;
  }

  int step(std::string& text) {
    stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
    stream_.avail_out = static_cast<uInt>(buffer_.size());
    const int state = ::inflate(&stream_, Z_NO_FLUSH);
    text.append(buffer_.data(), buffer_.size() - stream_.avail_out);
    return state;
  }

  const std::filesystem::path& path_;
  z_stream stream_{};
  std::array<char, 1 << 16> buffer_{};
};

}  // namespace

bool is_gzip(std::string_view content) noexcept {
  return content.starts_with("\x1f\x8b");
}

std::string unpacked(std::string_view content, const std::filesystem::path& path) {
  std::string text;
  Inflater inflater(path);
  while (!content.empty()) {
    if (!is_gzip(content)) {
      refuse(path, "there is something else behind the gzip data");
    }
    content = inflater.unpack_member(content, text);
  }
  return text;
}

}  // namespace zeroth::data
