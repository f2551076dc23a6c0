#include "data/csv_rows.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  [[nodiscard]] bool at_end() const { return offset_ == text_.size(); }

  CsvRow row() {
    CsvRow row{.line = line_, .fields = {}};
    do {
      row.fields.push_back(field());
    } while (take(','));
    take_carriage_return();
    if (!take('\n') && !at_end()) {
      refuse(line_, "something stands behind the closing quote of a field");
    }
    return row;
  }

  [[noreturn]] void refuse(std::size_t line, const std::string& problem) const {
    throw Error(ErrorKind::kData,
                fmt::format("{}:{}: {}\n  A quote within a quoted field is written twice.",
                            source_,
                            line,
                            problem));
  }

 private:
  bool take(char wanted) {
    if (at_end() || text_[offset_] != wanted) {
      return false;
    }
    line_ += wanted == '\n' ? 1 : 0;
    ++offset_;
    return true;
  }

  void take_carriage_return() {
    if (text_.substr(offset_).starts_with("\r\n")) {
      ++offset_;
    }
  }

  std::string field() { return take('"') ? quoted() : plain(); }

  std::string plain() {
    std::size_t end = std::min(text_.find_first_of(",\n", offset_), text_.size());
    end -=
        end > offset_ && text_[end - 1] == '\r' && end < text_.size() && text_[end] == '\n' ? 1 : 0;
    const std::size_t begin = std::exchange(offset_, end);
    return std::string(text_.substr(begin, end - begin));
  }

  std::string quoted() {
    const std::size_t begin = line_;
    std::string value;
    while (!at_end()) {
      const char c = text_[offset_];
      take(c);
      if (c == '"' && !take('"')) {
        return value;
      }
      value += c;
    }
    refuse(begin, "a quote opens here and never closes");
  }

  std::string_view text_;
  const std::string& source_;
  std::size_t offset_ = 0;
  std::size_t line_ = 1;
};

bool is_empty(const CsvRow& row) {
  return row.fields.size() == 1 && row.fields.front().empty();
}

void check_names(const std::vector<std::string>& names, const Reader& reader) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) {
      reader.refuse(1, "a column has no name");
    }
    if (!seen.insert(name).second) {
      reader.refuse(1, fmt::format("two columns are named \"{}\"", name));
    }
  }
}

}  // namespace

CsvRows split_csv_rows(std::string_view text, const std::string& source) {
  Reader reader(text, source);
  CsvRows result;
  while (!reader.at_end()) {
    CsvRow row = reader.row();
    if (is_empty(row)) {
      continue;
    }
    if (result.names.empty()) {
      result.names = std::move(row.fields);
      check_names(result.names, reader);
    } else {
      result.rows.push_back(std::move(row));
    }
  }
  return result;
}

Json csv_object(const CsvRow& row, const std::vector<std::string>& names, std::string& problem) {
  if (row.fields.size() != names.size()) {
    problem = fmt::format("{} fields, and {} columns have names", row.fields.size(), names.size());
    return {};
  }
  Json object = Json::object();
  for (std::size_t i = 0; i < names.size(); ++i) {
    object[names[i]] = row.fields[i];
  }
  return object;
}

}  // namespace zeroth::data
