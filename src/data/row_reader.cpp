#include "data/row_reader.h"

#include <algorithm>
#include <optional>

#include "data/csv_rows.h"
#include "data/json_rows.h"
#include "text/utf8.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

// A broken line of JSONL is a bad row like others, since the next line stands by itself (think of a
// file whose last line was cut off). In an array nothing after the mistake can be trusted: the
// error goes up.
std::optional<Json> parse_or_report(const RowText& row,
                                    const std::string& source,
                                    RowLayout layout,
                                    BadRows& bad_rows) {
  if (layout == RowLayout::kArray) {
    return parse_row(row, source);
  }
  try {
    return parse_row(row, source);
  } catch (const Error& error) {
    bad_rows.add_worded(error.what());
    return std::nullopt;
  }
}

void read_row(const RowText& row,
              const RowPlace& place,
              RowLayout layout,
              const RowFormat& format,
              BadRows& bad_rows) {
  std::string problem = utf8_problem(row.text, row.start);
  if (problem.empty()) {
    const auto value = parse_or_report(row, place.file->string(), layout, bad_rows);
    problem = value ? format.take(place, *value) : "";
  }
  if (!problem.empty()) {
    bad_rows.add(place, problem);
  }
}

// The format of a file in which no row is good, as its first row shows it; empty where it is not a
// known one.
std::string foreign_format(const JsonRows& rows, const DataFile& file, const RowFormat& format) {
  const RowText& first = rows.rows.front();
  if (!utf8_problem(first.text, first.start).empty()) {
    return {};
  }
  try {
    return format.name_foreign(parse_row(first, file.path->string()));
  } catch (const Error&) {
    return {};  // already among the bad rows
  }
}

// One sentence about the whole file says more than the same complaint about each row.
void refuse_if_foreign(const std::string& foreign,
                       std::int64_t rows,
                       const DataFile& file,
                       BadRows& bad_rows) {
  if (!foreign.empty()) {
    bad_rows.take_back(rows);
    bad_rows.refuse_file(fmt::format("{}: {}", file.path->string(), foreign));
  }
}

}  // namespace

std::string utf8_problem(std::string_view text, TextPosition start) {
  const auto offset = text::first_invalid_utf8(text);
  if (!offset) {
    return {};
  }
  const TextPosition inside = position_of(text, *offset);
  const std::size_t column = inside.line == 1 ? start.column + inside.column - 1 : inside.column;
  return fmt::format("byte 0x{:02x} at line {}, column {} is not UTF-8; convert the file to UTF-8",
                     static_cast<unsigned char>(text[*offset]),
                     start.line + inside.line - 1,
                     column);
}

namespace {

std::int64_t read_json(const DataFile& file,
                       std::int64_t max_samples,
                       const RowFormat& format,
                       BadRows& bad_rows) {
  JsonRows rows =
      split_json_rows(file.text(), file.path->string(), file.format == FileFormat::kJsonLines);
  if (max_samples >= 0) {
    rows.rows.resize(std::min(rows.rows.size(), static_cast<std::size_t>(max_samples)));
  }
  const std::int64_t bad_before = bad_rows.count();
  RowPlace place{.file = file.path, .line = 1, .number = 0};
  for (const RowText& row : rows.rows) {
    place.line = row.start.line;
    ++place.number;
    read_row(row, place, rows.layout, format, bad_rows);
  }
  if (place.number > 0 && bad_rows.count() - bad_before == place.number) {
    refuse_if_foreign(foreign_format(rows, file, format), place.number, file, bad_rows);
  }
  return place.number;
}

std::string csv_problem(const CsvRow& row) {
  for (const std::string& field : row.fields) {
    if (std::string problem = utf8_problem(field, {.line = row.line}); !problem.empty()) {
      return problem;
    }
  }
  return {};
}

std::int64_t read_csv(const DataFile& file,
                      std::int64_t max_samples,
                      const RowFormat& format,
                      BadRows& bad_rows) {
  const CsvRows csv = split_csv_rows(file.text(), file.path->string());
  const std::int64_t bad_before = bad_rows.count();
  RowPlace place{.file = file.path, .line = 1, .number = 0};
  std::optional<Json> first;
  for (const CsvRow& row : csv.rows) {
    if (place.number == max_samples) {
      break;
    }
    place.line = row.line;
    ++place.number;
    std::string problem = csv_problem(row);
    if (problem.empty()) {
      const Json object = csv_object(row, csv.names, problem);
      problem = problem.empty() ? format.take(place, object) : problem;
      first = first ? first : std::optional(object);
    }
    if (!problem.empty()) {
      bad_rows.add(place, problem);
    }
  }
  if (first && bad_rows.count() - bad_before == place.number) {
    refuse_if_foreign(format.name_foreign(*first), place.number, file, bad_rows);
  }
  return place.number;
}

}  // namespace

std::int64_t read_rows(const DataFile& file,
                       std::int64_t max_samples,
                       const RowFormat& format,
                       BadRows& bad_rows) {
  return file.format == FileFormat::kCsv ? read_csv(file, max_samples, format, bad_rows)
                                         : read_json(file, max_samples, format, bad_rows);
}

}  // namespace zeroth::data
