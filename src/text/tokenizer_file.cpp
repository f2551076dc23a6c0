#include "text/tokenizer_file.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/fields.h"
#include "text/json_cursor.h"
#include <fmt/format.h>

namespace zeroth::text {
namespace {

constexpr std::int64_t kMostIds = std::int64_t{1}
                                  << 24;  // far above any vocabulary; a bound on memory

TokenId checked_id(std::int64_t id, std::string_view token, const JsonCursor& cursor) {
  if (id < 0 || id >= kMostIds) {
    cursor.fail(fmt::format("the token \"{}\" has the id {}, which is out of range", token, id));
  }
  return static_cast<TokenId>(id);
}

// The parts of "model", in whatever order the file has them.
class ModelReader {
 public:
  ModelReader(JsonCursor& cursor, const std::string& source)
      : cursor_(cursor), where_(source + ": model") {}

  void read() {
    cursor_.object("model", [&](std::string_view key) { read_member(key); });
    seen_ = true;
  }

  [[nodiscard]] bool seen() const noexcept { return seen_; }

  Bpe finish() {
    Fields fields(others_, where_);
    const std::string type = fields.string_or("type", "BPE");
    if (type != "BPE") {
      fields.not_supported(fmt::format("a tokenizer model of type \"{}\" (BPE is)", type));
    }
    BpeSettings settings{.unk_token = fields.string_or("unk_token", ""),
                         .fuse_unk = fields.flag_or("fuse_unk", false),
                         .byte_fallback = fields.flag_or("byte_fallback", false),
                         .ignore_merges = fields.flag_or("ignore_merges", false)};
    refuse_dropout(fields);
    refuse_affix(fields, "continuing_subword_prefix");
    refuse_affix(fields, "end_of_word_suffix");
    fields.refuse_others();
    if (!has_vocab_ || !has_merges_) {
      throw Error(ErrorKind::kFormat,
                  fmt::format("{} lacks \"{}\"", where_, has_vocab_ ? "merges" : "vocab"));
    }
    return {std::move(settings), std::move(vocabulary_), merges_, where_};
  }

 private:
  void read_member(std::string_view key) {
    if (key == "vocab" && cursor_.peek() == '{') {
      read_vocab();
    } else if (key == "merges") {
      has_merges_ = true;
      cursor_.array("model.merges", [&] { read_merge(); });
    } else if (key == "vocab") {
      cursor_.skip_value();  // a list belongs to another type of model, which finish() names
    } else {
      others_[std::string(key)] = cursor_.value();
    }
  }

  void read_vocab() {
    has_vocab_ = true;
    vocabulary_.reserve(cursor_.size() / 80, cursor_.size() / 8);  // about what real files need
    cursor_.object("model.vocab", [&](std::string_view token) {
      const TokenId id = checked_id(cursor_.integer("an id of model.vocab"), token, cursor_);
      if (vocabulary_.add(token, id) != TokenTable::Added::kNew) {
        cursor_.fail(
            fmt::format("the token \"{}\" or its id {} stands in model.vocab twice", token, id));
      }
    });
  }

  void read_merge() {
    if (cursor_.peek() == '"') {
      const std::string_view rule = cursor_.string("a merge");
      const std::size_t space = rule.find(' ');
      if (space == std::string_view::npos || rule.find(' ', space + 1) != std::string_view::npos) {
        cursor_.fail(
            fmt::format("the merge \"{}\" is not two tokens with a space between them", rule));
      }
      merges_.emplace_back(rule.substr(0, space), rule.substr(space + 1));
      return;
    }
    std::array<std::string_view, 2> pair;
    std::size_t count = 0;
    cursor_.array("a merge",
                  [&] { pair[std::min(count++, std::size_t{1})] = cursor_.string("a merge"); });
    if (count != 2) {
      cursor_.fail(fmt::format("a merge of {} tokens, where 2 are wanted", count));
    }
    merges_.emplace_back(pair[0], pair[1]);
  }

  static void refuse_dropout(Fields& fields) {
    const Json* dropout = fields.find("dropout");
    if (dropout != nullptr && !(dropout->is_number() && dropout->get<double>() == 0.0)) {
      fields.not_supported("\"dropout\" (random merges)");
    }
  }

  static void refuse_affix(Fields& fields, std::string_view key) {
    if (const std::string affix = fields.string_or(key, ""); !affix.empty()) {
      fields.not_supported(fmt::format("\"{}\": \"{}\"", key, affix));
    }
  }

  JsonCursor& cursor_;
  std::string where_;
  Json others_ = Json::object();
  TokenTable vocabulary_;
  std::vector<Bpe::MergeRule> merges_;
  bool seen_ = false, has_vocab_ = false, has_merges_ = false;
};

void read_added_token(JsonCursor& cursor, const std::string& source, std::vector<AddedToken>& to) {
  const Json entry = cursor.value();
  Fields fields(entry, fmt::format("{}: added_tokens[{}]", source, to.size()));
  AddedToken token = AddedToken::parse(fields);
  token.id = checked_id(fields.integer("id"), token.content, cursor);
  fields.refuse_others();
  to.push_back(std::move(token));
}

}  // namespace

TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& source) {
  JsonCursor cursor(text, source);
  ModelReader model(cursor, source);
  std::vector<AddedToken> added;
  Json normalizer, pre_tokenizer, post_processor, decoder;
  cursor.object("the tokenizer", [&](std::string_view key) {
    if (key == "model") {
      model.read();
    } else if (key == "added_tokens" && cursor.peek() == '[') {
      cursor.array("added_tokens", [&] { read_added_token(cursor, source, added); });
    } else if (key == "normalizer") {
      normalizer = cursor.value();
    } else if (key == "pre_tokenizer") {
      pre_tokenizer = cursor.value();
    } else if (key == "post_processor") {
      post_processor = cursor.value();
    } else if (key == "decoder") {
      decoder = cursor.value();
    } else if (key == "version" || key == "truncation" || key == "padding" ||
               key == "added_tokens") {
      cursor.skip_value();  // who encodes decides on lengths, as with Transformers
    } else {
      throw Error(ErrorKind::kNotSupported, fmt::format("{}: \"{}\" is not built", source, key));
    }
  });
  cursor.expect_end();
  if (!model.seen()) {
    throw Error(ErrorKind::kFormat, fmt::format("{} lacks \"model\"", source));
  }
  return {std::move(added),
          std::move(normalizer),
          std::move(pre_tokenizer),
          std::move(post_processor),
          std::move(decoder),
          model.finish()};
}

}  // namespace zeroth::text
