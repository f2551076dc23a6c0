#include "base/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace zeroth {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{8} << 20;  // written at one time
constexpr std::size_t kAlignment = 4096;                   // of direct transfers

std::string reason() {
  return std::strerror(errno);
}

[[noreturn]] void refuse_write(const std::filesystem::path& path) {
  throw Error(ErrorKind::kDisk,
              fmt::format("cannot write {}: {}\n  Nothing was replaced. Free some space or choose "
                          "another folder.",
                          path.string(),
                          reason()));
}

// Hands all of `bytes` to `write_some`, which takes as many as it can.
template <typename WriteSome>
void write_all(std::span<const std::byte> bytes,
               const std::filesystem::path& path,
               WriteSome write_some) {
  while (!bytes.empty()) {
    const ssize_t written = write_some(bytes);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      refuse_write(path);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path)
    : final_path_(std::move(path)),
      path_(fmt::format("{}.tmp{}", final_path_.string(), ::getpid())),
      descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) {
    throw Error(
        ErrorKind::kDisk,
        fmt::format("cannot create {}: {}\n  Check that the folder exists and may be written to.",
                    path_,
                    reason()));
  }
}

AtomicFile::~AtomicFile() {
  if (writing_.valid()) {
    writing_.wait();
  }
  if (direct_ >= 0) {
    ::close(direct_);
  }
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(path_.c_str());
  }
}

void AtomicFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    Block& block = blocks_[filling_];
    if (block.bytes == nullptr) {
      block.bytes.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, kBlockBytes)));
      if (block.bytes == nullptr) {
        throw std::bad_alloc();
      }
    }
    const std::size_t count = std::min(bytes.size(), kBlockBytes - block.used);
    std::memcpy(block.bytes.get() + block.used, bytes.data(), count);
    block.used += count;
    bytes = bytes.subspan(count);
    if (block.used == kBlockBytes) {
      write_block();
    }
  }
}

// Hands the full block to a thread and turns to the other one.
void AtomicFile::write_block() {
  wait_for_block();
  if (written_ == 0) {
    direct_ = ::open(path_.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
  }
  const std::span<const std::byte> bytes(blocks_[filling_].bytes.get(), kBlockBytes);
  writing_ = std::async(std::launch::async, [this, bytes, offset = written_] {
    write_at(offset, bytes, direct_ >= 0 ? direct_ : descriptor_);
    if (direct_ < 0) {  // on its way to the disk; publish() waits for it all
      ::sync_file_range(
          descriptor_, offset, static_cast<off_t>(bytes.size()), SYNC_FILE_RANGE_WRITE);
    }
  });
  written_ += static_cast<std::int64_t>(kBlockBytes);
  filling_ = 1 - filling_;
  blocks_[filling_].used = 0;
}

void AtomicFile::wait_for_block() {
  if (writing_.valid()) {
    writing_.get();
  }
}

void AtomicFile::write_at(std::int64_t offset,
                          std::span<const std::byte> bytes,
                          int descriptor) const {
  write_all(bytes, final_path_, [&](std::span<const std::byte> left) {
    ssize_t count = ::pwrite(descriptor, left.data(), left.size(), offset);
    if (count < 0 && errno == EINVAL && descriptor == direct_) {  // not on this file system
      count = ::pwrite(descriptor_, left.data(), left.size(), offset);
    }
    offset += std::max<ssize_t>(count, 0);
    return count;
  });
}

void AtomicFile::overwrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  const auto begin = static_cast<std::int64_t>(offset);
  const std::int64_t on_disk =
      std::clamp<std::int64_t>(written_ - begin, 0, static_cast<std::int64_t>(bytes.size()));
  const auto written = static_cast<std::size_t>(on_disk);
  if (written > 0) {
    wait_for_block();
    write_at(begin, bytes.first(written), descriptor_);
  }
  if (written < bytes.size()) {
    std::memcpy(blocks_[filling_].bytes.get() + (begin + on_disk - written_),
                bytes.data() + written,
                bytes.size() - written);
  }
}

void AtomicFile::publish() {
  wait_for_block();
  const Block& rest = blocks_[filling_];
  write_at(written_, {rest.bytes.get(), rest.used}, descriptor_);
  if (::fsync(descriptor_) != 0 || ::rename(path_.c_str(), final_path_.c_str()) != 0) {
    throw Error(ErrorKind::kDisk,
                fmt::format("cannot finish {}: {}", final_path_.string(), reason()));
  }
  ::close(descriptor_);
  descriptor_ = -1;
  (void)sync_folder(final_path_.has_parent_path() ? final_path_.parent_path()
                                                  : std::filesystem::path("."));
}

std::error_code sync_folder(const std::filesystem::path& folder) noexcept {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    return {errno, std::generic_category()};
  }
  const int why = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  return {why, std::generic_category()};
}

}  // namespace zeroth
