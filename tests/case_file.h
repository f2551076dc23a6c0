#pragma once

#include <filesystem>
#include <string>
#include <vector>

// A .case file: one command as typed, and what must come of it. Lines, each a word and the rest of
// the line:
//   #       a remark
//   needs   a folder beside the repository without which the case is skipped (../shared/data)
//   file    NAME CONTENT: a file in the case's own working folder, \n in CONTENT is a line break
//   env     NAME=value
//   in      a line of standard input
//   run     the words after "zeroth"; "quoted words" stay together, $DATA and $MODELS stand for the
//   test data exit    the exit code (0 unless said) out     a whole line of standard output; if
//   there is any, all lines must be listed in order has     a part of standard output        lacks
//   what must not be in either stream says    a part of standard error within  milliseconds that
//   the quickest of five runs may take: a limit that catches hangs
namespace zeroth::testing {

struct CaseFile {
  struct File {
    std::string name;
    std::string content;
  };

  std::string needs;
  std::vector<File> files;
  std::vector<std::string> environment;
  std::string input;
  std::vector<std::string> arguments;
  int exit_code = 0;
  std::string output;
  std::vector<std::string> output_parts;
  std::vector<std::string> error_parts;
  std::vector<std::string> absent_parts;
  double within_ms = 0;
};

// Throws std::runtime_error naming the file and line that cannot be understood.
[[nodiscard]] CaseFile read_case(const std::filesystem::path& path,
                                 const std::filesystem::path& data_folder);

}  // namespace zeroth::testing
