#include "plan/proposal_text.h"

#include <algorithm>
#include <cctype>

#include "base/printing.h"
#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::plan {
namespace {

constexpr std::size_t kIndent = 2;

class Printer {
 public:
  explicit Printer(const Comments& comments) : comments_(comments) {}

  [[nodiscard]] std::string block(const Json& object,
                                  const std::string& path,
                                  std::size_t indent) const {
    std::vector<std::string> members;
    for (const auto& [key, value] : object.items()) {
      members.push_back(member(key, value, path.empty() ? key : path + "." + key, indent));
    }
    return fmt::format("{{\n{}\n{}}}", join(members, ",\n"), std::string(indent, ' '));
  }

 private:
  [[nodiscard]] std::string member(const std::string& key,
                                   const Json& value,
                                   const std::string& path,
                                   std::size_t outer) const {
    const std::size_t indent = outer + kIndent;
    const auto comment = comments_.find(path);
    const bool with_comments = value.is_object() && has_comments_in(path);
    return fmt::format("{}{}{}: {}",
                       comment == comments_.end() ? "" : comment_lines(comment->second, indent),
                       std::string(indent, ' '),
                       json_text(key),
                       with_comments ? block(value, path, indent) : on_one_line(value));
  }

  [[nodiscard]] bool has_comments_in(const std::string& path) const {
    const auto next = comments_.lower_bound(path + ".");
    return next != comments_.end() && next->first.starts_with(path + ".");
  }

  static std::string on_one_line(const Json& value) {
    if (!value.is_structured()) {
      return json_text(value);
    }
    std::vector<std::string> parts;
    for (const auto& [key, inner] : value.items()) {
      parts.push_back(value.is_object() ? fmt::format("{}: {}", json_text(key), on_one_line(inner))
                                        : on_one_line(inner));
    }
    const std::string inside = join(parts, ", ");
    return value.is_object() ? fmt::format("{{{}}}", inside) : fmt::format("[{}]", inside);
  }

  const Comments& comments_;
};

bool is_plain(unsigned char c) {
  constexpr std::string_view kPlain = "_-./=:,+@%";
  return std::isalnum(c) != 0 || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
}

bool is_control(unsigned char c) {
  return c < 0x20 || c == 0x7F;
}

// In $'...', where a line break is no line break.
std::string with_escapes(const std::string& word) {
  std::string quoted = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_control(byte)) {
      quoted += fmt::format("\\{:03o}", byte);
    } else {
      quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
  }
  return quoted + "'";
}

std::string shell_word(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) {
    return word;
  }
  if (std::any_of(word.begin(), word.end(), is_control)) {
    return with_escapes(word);
  }
  return fmt::format("'{}'", join(split(word, '\''), R"('\'')"));
}

}  // namespace

std::string comment_lines(const std::string& text, std::size_t indent) {
  std::string lines;
  for (const std::string& line : split(visible(text), '\n')) {
    lines += fmt::format("{}// {}\n", std::string(indent, ' '), line);
  }
  return lines;
}

std::string commented_json(const Json& object, const Comments& comments) {
  return Printer(comments).block(object, "", 0) + "\n";
}

void put_at(Json& object, const std::string& path, Json value) {
  Json* place = &object;
  for (const std::string& key : split(path, '.')) {
    place = &(*place)[key];
  }
  *place = std::move(value);
}

std::string shell_line(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  std::transform(words.begin(), words.end(), std::back_inserter(quoted), shell_word);
  return join(quoted, " ");
}

}  // namespace zeroth::plan
