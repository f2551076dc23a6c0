#pragma once

#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "formats/safetensors.h"
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

// For tests of files: a folder that goes away, real inputs, errors looked into, tensors without
// files.
namespace zeroth::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            (std::string("zeroth_") + test->test_suite_name() + "_" + test->name() + "_" +
             std::to_string(::getpid()));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  [[nodiscard]] std::filesystem::path write(const std::string& name,
                                            const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;  // not synced: tests write many
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

// While it lives, a write beyond `bytes` of any file fails in this process, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }

  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

inline std::filesystem::path shared_data() {
  return ZEROTH_SOURCE_DIR "/../shared/data";
}

inline bool has_shared_data() {
  return std::filesystem::exists(shared_data());
}

// Runs `action`, which must throw an Error of `kind` whose message holds each of `parts`.
inline void expect_error(const std::function<void()>& action,
                         ErrorKind kind,
                         const std::vector<std::string>& parts) {
  try {
    action();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.kind(), kind) << message;
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << "\"" << part << "\" not in: " << message;
    }
  }
}

// Zeros of any shape; their bytes live as long as the object.
class ZeroTensors {
 public:
  [[nodiscard]] formats::TensorToWrite make(const std::string& name,
                                            std::vector<std::int64_t> shape,
                                            formats::DType dtype = formats::DType::kF32) {
    std::size_t bytes = formats::element_bytes(dtype);
    for (const std::int64_t size : shape) {
      bytes *= static_cast<std::size_t>(size);
    }
    storage_.push_back(std::vector<std::byte>(bytes));
    return {.name = name,
            .dtype = dtype,
            .shape = std::move(shape),
            .bytes = formats::ready(storage_.back())};
  }

 private:
  std::vector<std::vector<std::byte>> storage_;  // moving an inner vector leaves its bytes in place
};

}  // namespace zeroth::testing
