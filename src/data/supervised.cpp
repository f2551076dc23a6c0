#include "data/supervised.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "data/data_file.h"
#include "data/encode.h"
#include "data/row_reader.h"
#include "data/rows.h"
#include "text/utf8.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

void refuse_plain_text(const DataFile& file) {
  if (file.format == FileFormat::kPlainText) {
    throw Error(
        ErrorKind::kData,
        fmt::format(
            "{}: plain text has no question and answer\n  Train on it with --stage pt, or give "
            "rows of alpaca, sharegpt or messages (.json, .jsonl).",
            file.path->string()));
  }
}

bool any_spells(const Conversation& row, std::string_view token) {
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

SupervisedRows read_supervised_rows(const Sources& sources,
                                    const LoadSettings& settings,
                                    Answer answer) {
  SupervisedRows result;
  BadRows bad_rows;
  const RowColumns* columns = &settings.columns;
  const auto take = [&](const RowPlace& place, const Json& value) {
    std::string problem;
    Conversation row = parse_row(value, *columns, answer, problem);
    if (problem.empty() && answer == Answer::kRequired && is_blank(row.turns.back().assistant)) {
      ++result.counts.dropped_empty;
    } else if (problem.empty()) {
      row.system = row.system.empty() ? settings.default_system : std::move(row.system);
      result.rows.push_back({.place = place, .row = std::move(row)});
    }
    return problem;
  };
  const auto name_foreign = [&](const Json& first_row) {
    return columns->named ? std::string() : foreign_to_supervised(first_row);
  };
  for (const Source& source : sources) {
    const DataFile file = open_data_file(source.file);
    refuse_plain_text(file);
    columns = source.columns ? &*source.columns : &settings.columns;
    result.counts.read += read_rows(
        file, settings.max_samples, {.take = take, .name_foreign = name_foreign}, bad_rows);
  }
  bad_rows.raise_if_any(result.counts.read, settings.skip_bad_rows);
  result.counts.dropped_bad = bad_rows.count();
  return result;
}

Dataset load_supervised(const Sources& sources,
                        const text::Tokenizer& tokenizer,
                        const LoadSettings& settings) {
  const auto format = text::PromptTemplate::named(settings.prompt_template);
  SupervisedRows read = read_supervised_rows(sources, settings, Answer::kRequired);
  const std::string bos = written_bos(tokenizer);
  Dataset dataset;
  dataset.counts = read.counts;
  for (const auto& [place, row] : read.rows) {
    std::int64_t tokens_cut = 0;
    Example example = join_turns(format.encode(tokenizer, row.system, row.turns),
                                 settings.cutoff_len,
                                 settings.trains,
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
  finish_dataset(dataset, sources);
  return dataset;
}

}  // namespace zeroth::data
