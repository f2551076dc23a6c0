#include "text/decoder.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "text/byte_level.h"
#include "text/fields.h"
#include "text/metaspace.h"
#include "text/pattern.h"
#include "text/utf8.h"
#include <fmt/format.h>

namespace zeroth::text {
namespace {

void decode_byte_level(std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    append_bytes_of(bytes, token);
  }
  tokens.assign(1, with_replacements(bytes));
}

// The byte that a token like <0x0A> stands for.
std::optional<char> fallback_byte(std::string_view token) {
  unsigned value = 0;
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') {
    return std::nullopt;
  }
  const char* digits_end = token.data() + 5;
  const auto [end, error] = std::from_chars(token.data() + 3, digits_end, value, 16);
  return error == std::errc() && end == digits_end ? std::optional(static_cast<char>(value))
                                                   : std::nullopt;
}

// A run of byte tokens is text as a whole, or else each of its bytes is a U+FFFD (as Hugging Face
// has it).
void append_byte_run(std::vector<std::string>& to, std::string& run) {
  if (run.empty()) {
    return;
  }
  if (first_invalid_utf8(run)) {
    to.insert(to.end(), run.size(), "\xEF\xBF\xBD");
  } else {
    to.push_back(run);
  }
  run.clear();
}

void decode_byte_fallback(std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  std::string run;
  for (std::string& token : tokens) {
    if (const auto byte = fallback_byte(token)) {
      run += *byte;
    } else {
      append_byte_run(out, run);
      out.push_back(std::move(token));
    }
  }
  append_byte_run(out, run);
  tokens = std::move(out);
}

void fuse(std::vector<std::string>& tokens) {
  std::string joined = join(tokens, "");
  tokens.assign(1, std::move(joined));
}

Decoder parse_replace(Fields& fields) {
  return [pattern = Pattern::parse(fields.any("pattern"), fields.where() + ".pattern"),
          content = fields.string("content")](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) {
      token = pattern.replace_all(token, content);
    }
  };
}

Decoder parse_strip(Fields& fields) {
  const std::string content = fields.string("content");
  const std::int64_t at_start = fields.integer("start");
  const std::int64_t at_end = fields.integer("stop");
  if (content.empty()) {
    fields.not_supported("an empty \"content\"");
  }
  return [content, at_start, at_end](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) {
      for (std::int64_t i = 0; i < at_start && token.starts_with(content); ++i) {
        token.erase(0, content.size());
      }
      for (std::int64_t i = 0; i < at_end && token.ends_with(content); ++i) {
        token.resize(token.size() - content.size());
      }
    }
  };
}

Decoder parse_metaspace(Fields& fields) {
  const Metaspace metaspace = Metaspace::parse(fields);
  const Pattern replacement(metaspace.replacement);
  const bool drop_first = metaspace.scheme != Metaspace::Scheme::kNever;
  return [replacement, drop_first](std::vector<std::string>& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = replacement.replace_all(tokens[i], i == 0 && drop_first ? "" : " ");
    }
  };
}

Decoder parse_sequence(Fields& fields) {
  std::vector<Decoder> steps;
  for (const Json& step : fields.array("decoders")) {
    steps.push_back(
        parse_decoder(step, fmt::format("{}.decoders[{}]", fields.where(), steps.size())));
  }
  return [steps = std::move(steps)](std::vector<std::string>& tokens) {
    for (const Decoder& step : steps) {
      step(tokens);
    }
  };
}

Decoder parse_byte_level(Fields& fields) {
  // These steer the pre-tokenizer of the same name; a decoder carries them along.
  for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) {
    fields.without_effect(key);
  }
  return decode_byte_level;
}

Decoder parse_typed(const std::string& type, Fields& fields) {
  if (type == "ByteLevel") {
    return parse_byte_level(fields);
  }
  if (type == "ByteFallback") {
    return decode_byte_fallback;
  }
  if (type == "Fuse") {
    return fuse;
  }
  if (type == "Replace") {
    return parse_replace(fields);
  }
  if (type == "Strip") {
    return parse_strip(fields);
  }
  if (type == "Metaspace") {
    return parse_metaspace(fields);
  }
  if (type == "Sequence") {
    return parse_sequence(fields);
  }
  fields.not_supported(fmt::format("a decoder of type \"{}\"", type));
}

}  // namespace

Decoder parse_decoder(const Json& json, const std::string& where) {
  Fields fields(json, where);
  Decoder decoder = parse_typed(fields.string("type"), fields);
  fields.refuse_others();
  return decoder;
}

}  // namespace zeroth::text
