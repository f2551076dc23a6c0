#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace zeroth::data {

// Where a row stands, for messages. `file` points into the caller's list of files.
struct RowPlace {
  const std::filesystem::path* file = nullptr;
  std::size_t line = 1;     // from 1
  std::int64_t number = 1;  // from 1, among the rows of its file
};

// "data.jsonl:2", or "data.json:17 (row 3)" where line and row differ.
[[nodiscard]] std::string to_string(const RowPlace& place);

// Gathers what cannot be used over all files, so that one error lists it all before anything long
// begins.
class BadRows {
 public:
  void add(const RowPlace& place, const std::string& problem);
  void add_worded(std::string message);          // a message that names its place itself
  void refuse_file(const std::string& message);  // --skip_bad_rows does not help

  [[nodiscard]] std::int64_t count() const noexcept { return count_; }

  // Takes the last `count` rows back, for a file that is refused as a whole.
  void take_back(std::int64_t count);

  // Throws the one kData error if there is reason to: files refused, or rows that may not be
  // skipped.
  void raise_if_any(std::int64_t rows_read, bool skip_bad_rows) const;

 private:
  [[nodiscard]] std::string listed_rows(std::int64_t rows_read) const;

  std::vector<std::string> messages_;  // of the first rows; the others are only counted
  std::vector<std::string> refused_files_;
  std::int64_t count_ = 0;
};

}  // namespace zeroth::data
