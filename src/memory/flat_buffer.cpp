#include "memory/flat_buffer.h"

#include <cstring>
#include <utility>

#include "base/error.h"
#include <fmt/format.h>
#include <sys/mman.h>

namespace zeroth::memory {
namespace {

constexpr std::int64_t kHugePageBytes = 2 << 20;

}  // namespace

FlatBuffer::FlatBuffer(std::int64_t bytes, Purpose purpose, std::shared_ptr<Tally> tally)
    : bytes_(bytes), purpose_(purpose), tally_(std::move(tally)) {
  if (bytes == 0) {
    return;
  }
  // Anonymous pages come zeroed and page-aligned.
  void* block = ::mmap(nullptr,
                       static_cast<std::size_t>(bytes),
                       PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS,
                       -1,
                       0);
  if (block == MAP_FAILED) {
    throw Error(
        ErrorKind::kMemory,
        fmt::format("cannot allocate {} bytes for {}\n  Choose a smaller model, fewer trainable "
                    "parameters (LoRA), or bf16.",
                    bytes,
                    purpose_name(purpose)));
  }
  if (bytes >= kHugePageBytes) {
    ::madvise(block, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  }
  data_ = static_cast<std::byte*>(block);
  tally_->add(purpose_, bytes_);
}

FlatBuffer::~FlatBuffer() {
  release();
}

FlatBuffer::FlatBuffer(FlatBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      purpose_(other.purpose_),
      tally_(std::move(other.tally_)) {
}

FlatBuffer& FlatBuffer::operator=(FlatBuffer&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    purpose_ = other.purpose_;
    tally_ = std::move(other.tally_);
  }
  return *this;
}

void FlatBuffer::set_zero() const noexcept {
  if (data_ != nullptr) {
    std::memset(data_, 0, static_cast<std::size_t>(bytes_));
  }
}

void FlatBuffer::release() noexcept {
  if (data_ != nullptr) {
    ::munmap(data_, static_cast<std::size_t>(bytes_));
    tally_->add(purpose_, -bytes_);
    data_ = nullptr;
  }
}

}  // namespace zeroth::memory
