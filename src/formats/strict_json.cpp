#include "formats/strict_json.h"

#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace zeroth::formats {
namespace {

constexpr std::size_t kShownBytes = 160;

// Builds the document and notes the first key that stands twice in one object. (The library's
// parser with a callback walks the whole parent after each object in it: minutes for many thousand
// tensors.)
template <typename Document>
class StrictBuilder : public nlohmann::detail::json_sax_dom_parser<Document> {
  using Base = nlohmann::detail::json_sax_dom_parser<Document>;

 public:
  StrictBuilder(Document& document, std::optional<std::string>& duplicate)
      : Base(document), duplicate_(duplicate) {}

  bool start_object(std::size_t size) {
    keys_of_open_objects_.emplace_back();
    return Base::start_object(size);
  }

  bool key(std::string& key) {
    if (!keys_of_open_objects_.back().insert(key).second && !duplicate_) {
      duplicate_ = key;
    }
    return Base::key(key);
  }

  bool end_object() {
    keys_of_open_objects_.pop_back();
    return Base::end_object();
  }

 private:
  std::optional<std::string>& duplicate_;
  std::vector<std::set<std::string>> keys_of_open_objects_;
};

template <typename Document>
Document parse_noting_duplicates(std::string_view text, std::optional<std::string>& duplicate) {
  Document document;
  StrictBuilder<Document> builder(document, duplicate);
  Document::sax_parse(text, &builder);
  return document;
}

template <typename Document>
void require_object(const Document& document,
                    const std::optional<std::string>& duplicate,
                    const std::string& source,
                    ErrorKind kind) {
  if (duplicate) {
    throw Error(kind,
                fmt::format("{}: the key \"{}\" stands twice in one object\n"
                            "  Which of the two is meant cannot be known: remove one of them.",
                            source,
                            printable(*duplicate, kShownBytes)));
  }
  if (!document.is_object()) {
    throw Error(kind,
                fmt::format("{}: a JSON object is expected, this is {} {}",
                            source,
                            document.is_array() ? "an" : "a",
                            document.type_name()));
  }
}

}  // namespace

Json parse_object(std::string_view text, const std::string& source, ErrorKind kind) {
  std::optional<std::string> duplicate;
  try {
    Json document = parse_noting_duplicates<Json>(text, duplicate);
    require_object(document, duplicate, source, kind);
    return document;
  } catch (const nlohmann::json::parse_error&) {
    return parse_json(text, source, kind);  // fails at the same place and names line and column
  } catch (const nlohmann::json::exception& error) {
    throw Error(kind, fmt::format("{}: {}", source, printable(error.what(), kShownBytes)));
  }
}

SortedJson parse_table(std::string_view text, const std::string& source, ErrorKind kind) {
  std::optional<std::string> duplicate;
  try {
    SortedJson document = parse_noting_duplicates<SortedJson>(text, duplicate);
    require_object(document, duplicate, source, kind);
    return document;
  } catch (const nlohmann::json::exception& error) {
    throw Error(
        kind,
        fmt::format("{} is not valid JSON: {}", source, printable(error.what(), kShownBytes)));
  }
}

std::string printable(std::string_view text, std::size_t at_most) {
  std::string result(text.substr(0, at_most));
  for (char& c : result) {
    if (c < ' ' || c > '~') {
      c = '?';
    }
  }
  return text.size() > at_most ? result + "..." : result;
}

std::string shown(const Json& value) {
  constexpr std::size_t kValueBytes = 80;
  return printable(value.dump(), kValueBytes);
}

}  // namespace zeroth::formats
