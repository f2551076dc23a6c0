// Writes the quickstart's data: zeroth_quickstart_data [--verify] [--documents N] OUTPUT_DIR
//   pretrain.jsonl                                what the base model is trained on (only with
//   --documents) train.json, validation.json, heldout.json     instruction rows (alpaca's fields)
// --verify only reads the three files in OUTPUT_DIR again and checks what the quickstart promises
// of them.
#include <charconv>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/random.h"
#include "pretrain.h"
#include "task.h"
#include "verify.h"
#include <fmt/format.h>

namespace zeroth::quickstart {
namespace {

constexpr std::uint64_t kSeed = 20240601;
constexpr TaskSizes kSizes{.train = 6000, .validation = 200, .heldout = 200};

struct Arguments {
  std::filesystem::path output_dir;
  std::uint64_t num_documents = 0;
  bool verify = false;
};

[[noreturn]] void refuse(const std::string& word) {
  throw Error(ErrorKind::kUsage,
              fmt::format("\"{}\" is not understood\n"
                          "  usage: zeroth_quickstart_data [--verify] [--documents N] OUTPUT_DIR",
                          word));
}

std::uint64_t parse_count(const std::string& word) {
  std::uint64_t count = 0;
  const char* end = word.data() + word.size();
  const auto [stopped_at, error] = std::from_chars(word.data(), end, count);
  if (error != std::errc() || stopped_at != end) {
    refuse(word);
  }
  return count;
}

Arguments parse(std::span<char*> words) {
  Arguments arguments;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string word = words[i];
    if (word == "--verify") {
      arguments.verify = true;
    } else if (word == "--documents" && i + 1 < words.size()) {
      arguments.num_documents = parse_count(words[++i]);
    } else if (word.starts_with("-") || !arguments.output_dir.empty()) {
      refuse(word);
    } else {
      arguments.output_dir = word;
    }
  }
  if (arguments.output_dir.empty()) {
    refuse("");
  }
  return arguments;
}

// One row a line, so that a reader can look at the file and a diff stays small.
std::string to_text(const std::vector<Row>& rows) {
  std::string text = "[\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json row{
        {"instruction", rows[i].instruction}, {"input", rows[i].input}, {"output", rows[i].output}};
    text += row.dump() + (i + 1 < rows.size() ? ",\n" : "\n");
  }
  return text + "]\n";
}

std::string pretraining_text(std::uint64_t num_documents) {
  constexpr std::uint64_t kPurpose = 2;
  RandomStream random(kSeed, kPurpose);
  std::string text;
  for (std::uint64_t i = 0; i < num_documents; ++i) {
    text += Json{{"text", pretraining_document(random)}}.dump() + "\n";
  }
  return text;
}

void write(const Arguments& arguments) {
  std::filesystem::create_directories(arguments.output_dir);
  const TaskData data = make_task_data(kSeed, kSizes);
  write_file_atomically(arguments.output_dir / "train.json", to_text(data.train));
  write_file_atomically(arguments.output_dir / "validation.json", to_text(data.validation));
  write_file_atomically(arguments.output_dir / "heldout.json", to_text(data.heldout));
  if (arguments.num_documents > 0) {
    write_file_atomically(arguments.output_dir / "pretrain.jsonl",
                          pretraining_text(arguments.num_documents));
  }
}

int run(std::span<char*> words) {
  const Arguments arguments = parse(words);
  if (!arguments.verify) {
    write(arguments);
  }
  const DataFacts facts = measure(read_task_data(arguments.output_dir));
  fmt::print("{}", describe(facts));
  require_promises(facts);
  return 0;
}

}  // namespace
}  // namespace zeroth::quickstart

int main(int argc, char** argv) {
  try {
    return zeroth::quickstart::run({argv, static_cast<std::size_t>(argc)});
  } catch (const zeroth::Error& error) {
    zeroth::log::error(error.what());
    return zeroth::exit_code(error.kind());
  } catch (const std::exception& error) {
    zeroth::log::error(error.what());
    return zeroth::exit_code(zeroth::ErrorKind::kInternal);
  }
}
