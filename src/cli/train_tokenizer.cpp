#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/output_folder.h"
#include "cli/checks.h"
#include "cli/commands.h"
#include "config/resolve.h"
#include "data/bad_rows.h"
#include "data/data_file.h"
#include "data/row_reader.h"
#include "data/rows.h"
#include "inputs/data_inputs.h"
#include "text/bpe_trainer.h"
#include <fmt/format.h>

namespace zeroth::cli {
namespace {

using Texts = std::vector<std::string>;

// Takes the texts under whichever of these columns the row has.
bool take_columns(const Json& row, Texts& texts) {
  bool found = false;
  for (const char* column : {"instruction", "input", "output", "text"}) {
    if (row.is_object() && row.contains(column) && row[column].is_string()) {
      texts.push_back(row[column].get<std::string>());
      found = true;
    }
  }
  return found;
}

// Takes all texts of a row of any format, or says what is wrong with it.
std::string take_row(const Json& row, const data::RowColumns& columns, Texts& texts) {
  if (!columns.named && take_columns(row, texts)) {
    return {};
  }
  std::string problem;
  const data::Conversation chat = data::parse_row(row, columns, data::Answer::kOptional, problem);
  if (!problem.empty()) {
    return columns.named ? problem : "has no text under instruction, input, output or text";
  }
  texts.push_back(chat.system);
  for (const text::Turn& turn : chat.turns) {
    texts.insert(texts.end(), {turn.user, turn.assistant});
  }
  return {};
}

Texts read_texts(const data::Sources& sources) {
  Texts texts;
  data::BadRows bad_rows;
  std::int64_t num_rows = 0;
  data::RowColumns columns;
  const data::RowFormat format{
      .take = [&](const data::RowPlace&, const Json& row) { return take_row(row, columns, texts); },
      .name_foreign = [](const Json&) { return std::string(); }};
  for (const data::Source& source : sources) {
    const data::DataFile file = data::open_data_file(source.file);
    columns = source.columns.value_or(data::RowColumns{});
    if (file.format == data::FileFormat::kPlainText) {
      texts.emplace_back(file.text());
    } else {
      num_rows += data::read_rows(file, -1, format, bad_rows);
    }
  }
  bad_rows.raise_if_any(num_rows, false);
  return texts;
}

// A text that is too small for the asked size is no error, but the model's vocab_size depends on
// it.
void tell_if_short(std::int64_t vocab_size, std::int64_t asked) {
  if (vocab_size < asked) {
    log::warn(
        fmt::format("the vocabulary has {} of the {} tokens asked for: no pair of the text "
                    "is left that would make another\n  More text gives more.",
                    vocab_size,
                    asked));
  }
}

void report(const text::TrainedTokenizer& tokenizer, const config::RunConfig& config) {
  if (config.json_output) {
    fmt::print("{}\n",
               Json{{"vocab_size", tokenizer.vocab_size}, {"merges", tokenizer.num_merges}}.dump());
    return;
  }
  fmt::print("a tokenizer of {} tokens ({} merges)\n", tokenizer.vocab_size, tokenizer.num_merges);
  for (const std::filesystem::path& file : tokenizer.files) {
    fmt::print("  {}\n", file.string());
  }
}

}  // namespace

int run_train_tokenizer(Arguments arguments) {
  const config::RunConfig config = config::resolve(config::Command::kTrainTokenizer, arguments, {});
  check_data_files(config.data);
  check_output_folder(config, {"tokenizer.json"});
  const Texts texts = read_texts(inputs::sources_of(config.data.dataset));
  const OutputFolder output(config.output.output_dir);
  text::TrainerSettings settings;
  settings.vocab_size = config.vocab_size;
  const text::TrainedTokenizer tokenizer =
      text::train_byte_level_bpe(texts, settings, config.output.output_dir);
  report(tokenizer, config);
  tell_if_short(static_cast<std::int64_t>(tokenizer.vocab_size), config.vocab_size);
  return 0;
}

}  // namespace zeroth::cli
