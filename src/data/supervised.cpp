#include "data/supervised.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/data_file.h"
#include "data/encode.h"
#include "data/row_reader.h"
#include "text/utf8.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

void refuse_plain_text(const DataFile& file) {
  if (file.format == FileFormat::kPlainText) {
    throw Error(
        ErrorKind::kData,
        fmt::format(
            "{}: plain text has no instruction and answer\n  Train on it with --stage pt, or give "
            "alpaca rows (.json, .jsonl).",
            file.path->string()));
  }
}

bool any_spells(const AlpacaRow& row, std::string_view token) {
  return spells(row.system, token) ||
         std::any_of(row.turns.begin(), row.turns.end(), [&](const text::Turn& turn) {
           return spells(turn.user, token) || spells(turn.assistant, token);
         });
}

}  // namespace

bool is_blank(std::string_view text) {
  for (std::size_t offset = 0; offset < text.size();) {
    const text::CodePoint point = text::code_point_at(text, offset);
    if (!text::is_whitespace(point.value)) {
      return false;
    }
    offset += point.length;
  }
  return true;
}

std::string written_bos(const text::Tokenizer& tokenizer) {
  const auto prefix = tokenizer.prefix_ids();
  const auto bos = tokenizer.bos_id();
  const bool written = bos && std::find(prefix.begin(), prefix.end(), *bos) != prefix.end();
  return written ? tokenizer.token_of(*bos) : std::string();
}

bool spells(std::string_view text, std::string_view token) {
  return !token.empty() && text.find(token) != std::string_view::npos;
}

SupervisedRows read_supervised_rows(std::span<const std::filesystem::path> files,
                                    const LoadSettings& settings,
                                    Answer answer) {
  SupervisedRows result;
  BadRows bad_rows;
  const auto take = [&](const RowPlace& place, const Json& value) {
    std::string problem;
    AlpacaRow row = parse_alpaca_row(value, answer, problem);
    if (problem.empty() && answer == Answer::kRequired && is_blank(row.turns.back().assistant)) {
      ++result.counts.dropped_empty;
    } else if (problem.empty()) {
      result.rows.push_back({.place = place, .row = std::move(row)});
    }
    return problem;
  };
  for (const auto& path : files) {
    const DataFile file = open_data_file(path);
    refuse_plain_text(file);
    result.counts.read += read_json_rows(
        file, settings.max_samples, {.take = take, .name_foreign = foreign_to_alpaca}, bad_rows);
  }
  bad_rows.raise_if_any(result.counts.read, settings.skip_bad_rows);
  result.counts.dropped_bad = bad_rows.count();
  return result;
}

Dataset load_supervised(std::span<const std::filesystem::path> files,
                        const text::Tokenizer& tokenizer,
                        const LoadSettings& settings) {
  const auto format = text::PromptTemplate::named(settings.prompt_template);
  SupervisedRows read = read_supervised_rows(files, settings, Answer::kRequired);
  const std::string bos = written_bos(tokenizer);
  Dataset dataset;
  dataset.counts = read.counts;
  for (const auto& [place, row] : read.rows) {
    std::int64_t tokens_cut = 0;
    Example example = join_turns(format.encode(tokenizer, row.system, row.turns),
                                 settings.cutoff_len,
                                 settings.train_on_prompt,
                                 tokens_cut);
    require_embedded(example.input_ids, settings.embedding_rows, tokenizer, place);
    if (example.num_targets() == 0) {
      ++dataset.counts.dropped_unlabelled;
      continue;
    }
    ++dataset.counts.kept;
    dataset.counts.truncated += tokens_cut > 0 ? 1 : 0;
    dataset.counts.tokens_cut += tokens_cut;
    dataset.counts.bos_in_text += any_spells(row, bos) ? 1 : 0;
    dataset.examples.push_back(std::move(example));
  }
  finish_dataset(dataset, files);
  return dataset;
}

}  // namespace zeroth::data
