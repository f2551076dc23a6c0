#include "data/pretrain.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "data/data_file.h"
#include "data/encode.h"
#include "data/row_reader.h"
#include "data/rows.h"
#include "data/supervised.h"

namespace zeroth::data {
namespace {

struct Document {
  RowPlace place;
  std::string text;
};

struct Documents {
  std::vector<Document> documents;
  RowCounts counts;
};

// Takes one document in, or drops it where it says nothing.
void keep_document(Documents& result, const RowPlace& place, std::string text) {
  if (is_blank(text)) {
    ++result.counts.dropped_empty;
  } else {
    result.documents.push_back({.place = place, .text = std::move(text)});
  }
}

// The whole of a plain text file is one document.
void read_plain_text(const DataFile& file, Documents& result, BadRows& bad_rows) {
  const RowPlace place{.file = file.path};
  ++result.counts.read;
  if (const std::string problem = utf8_problem(file.text(), {}); !problem.empty()) {
    bad_rows.add(place, problem);
  } else {
    keep_document(result, place, std::string(file.text()));
  }
}

Documents read_documents(const Sources& sources, const LoadSettings& settings) {
  Documents result;
  BadRows bad_rows;
  std::string column;
  const auto take = [&](const RowPlace& place, const Json& value) {
    std::string problem;
    std::string text = parse_text_row(value, column, problem);
    if (problem.empty()) {
      keep_document(result, place, std::move(text));
    }
    return problem;
  };
  for (const Source& source : sources) {
    const DataFile file = open_data_file(source.file);
    column = source.columns ? source.columns->prompt : "text";
    if (file.format == FileFormat::kPlainText) {
      read_plain_text(file, result, bad_rows);
    } else {
      result.counts.read += read_rows(file,
                                      settings.max_samples,
                                      {.take = take, .name_foreign = foreign_to_pretraining},
                                      bad_rows);
    }
  }
  bad_rows.raise_if_any(result.counts.read, settings.skip_bad_rows);
  result.counts.dropped_bad = bad_rows.count();
  return result;
}

std::vector<text::TokenId> encode_document(std::string_view text,
                                           const text::Tokenizer& tokenizer) {
  std::vector<text::TokenId> ids = tokenizer.prefix_ids();
  const auto body = tokenizer.encode(text, /*add_special_tokens=*/false);
  ids.insert(ids.end(), body.begin(), body.end());
  if (const auto eos = tokenizer.eos_id()) {
    ids.push_back(*eos);
  }
  return ids;
}

Example as_row(std::vector<text::TokenId> ids) {
  Example example{.input_ids = std::move(ids), .labels = {}};
  example.labels = example.input_ids;
  return example;
}

// One document, one row.
void add_truncated(Dataset& dataset, std::vector<text::TokenId> ids, std::int64_t cutoff_len) {
  const auto length = static_cast<std::int64_t>(ids.size());
  if (length > cutoff_len) {
    ++dataset.counts.truncated;
    dataset.counts.tokens_cut += length - cutoff_len;
    ids.resize(static_cast<std::size_t>(cutoff_len));
  }
  if (ids.size() < 2) {
    ++dataset.counts.dropped_unlabelled;
    return;
  }
  ++dataset.counts.kept;
  dataset.examples.push_back(as_row(std::move(ids)));
}

}  // namespace

Packer::Packer(std::int64_t row_tokens, std::vector<Example>& rows)
    : row_tokens_(static_cast<std::size_t>(row_tokens)), rows_(rows) {
  ZEROTH_CHECK(row_tokens >= 2, "a row of {} tokens holds no target", row_tokens);
}

void Packer::add(std::span<const text::TokenId> document) {
  while (!document.empty()) {
    const std::size_t taken = std::min(row_tokens_ - open_row_.size(), document.size());
    open_row_.insert(
        open_row_.end(), document.begin(), document.begin() + static_cast<std::ptrdiff_t>(taken));
    document = document.subspan(taken);
    if (open_row_.size() == row_tokens_) {
      close_row();
    }
  }
}

std::int64_t Packer::finish() {
  if (open_row_.size() >= 2) {
    close_row();
  }
  return static_cast<std::int64_t>(open_row_.size());
}

void Packer::close_row() {
  rows_.push_back(as_row(std::exchange(open_row_, {})));
}

Dataset load_pretrain(const Sources& sources,
                      const text::Tokenizer& tokenizer,
                      const LoadSettings& settings) {
  Documents read = read_documents(sources, settings);
  Dataset dataset;
  dataset.counts = read.counts;
  const std::string bos = written_bos(tokenizer);
  Packer packer(settings.cutoff_len, dataset.examples);
  for (const auto& [place, text] : read.documents) {
    auto ids = encode_document(text, tokenizer);
    require_embedded(ids, settings.embedding_rows, tokenizer, place);
    dataset.counts.bos_in_text += spells(text, bos) ? 1 : 0;
    if (settings.packing) {
      packer.add(ids);
      ++dataset.counts.kept;
    } else {
      add_truncated(dataset, std::move(ids), settings.cutoff_len);
    }
  }
  dataset.counts.tokens_cut += packer.finish();
  finish_dataset(dataset, sources);
  return dataset;
}

}  // namespace zeroth::data
