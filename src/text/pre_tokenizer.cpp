#include "text/pre_tokenizer.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "text/byte_level.h"
#include "text/fields.h"
#include "text/metaspace.h"
#include "text/pattern.h"
#include "text/split_behavior.h"
#include "text/utf8.h"
#include <fmt/format.h>

namespace zeroth::text {
namespace {

PreTokenizer splitter(Pattern pattern, SplitBehavior behavior, bool invert) {
  return [pattern = std::move(pattern), behavior, invert](Pieces& pieces) {
    std::vector<Span> matches;
    pieces.split([&](std::string_view piece, std::vector<Span>& parts) {
      pattern.find_all(piece, matches);
      split_at(matches, piece.size(), behavior, invert, parts);
    });
  };
}

// Delimiters are the characters that `is_delimiter` picks.
template <typename IsDelimiter>
PreTokenizer character_splitter(IsDelimiter is_delimiter, SplitBehavior behavior) {
  return [is_delimiter, behavior](Pieces& pieces) {
    std::vector<Span> matches;
    pieces.split([&](std::string_view piece, std::vector<Span>& parts) {
      matches.clear();
      for (std::size_t at = 0; at < piece.size();) {
        const CodePoint point = code_point_at(piece, at);
        if (is_delimiter(point.value)) {
          matches.push_back({at, at + point.length});
        }
        at += point.length;
      }
      split_at(matches, piece.size(), behavior, false, parts);
    });
  };
}

PreTokenizer parse_split(Fields& fields) {
  Pattern pattern = Pattern::parse(fields.any("pattern"), fields.where() + ".pattern");
  const SplitBehavior behavior = parse_split_behavior(fields);
  return splitter(std::move(pattern), behavior, fields.flag_or("invert", false));
}

void prepend_space(Pieces& pieces) {
  pieces.rewrite([](std::string& to, std::string_view piece, bool) {
    if (!piece.starts_with(' ')) {
      to += ' ';
    }
    to += piece;
  });
}

PreTokenizer parse_byte_level(Fields& fields) {
  const bool add_prefix_space = fields.flag_or("add_prefix_space", true);
  const bool use_regex = fields.flag_or("use_regex", true);
  fields.without_effect("trim_offsets");  // about positions in the text, which are not kept
  PreTokenizer cut =
      use_regex ? isolating_pre_tokenizer(Regex(kGpt2Pattern, fields.where())) : PreTokenizer();
  return [add_prefix_space, cut = std::move(cut)](Pieces& pieces) {
    if (add_prefix_space) {
      prepend_space(pieces);
    }
    if (cut) {
      cut(pieces);
    }
    pieces.rewrite(
        [](std::string& to, std::string_view piece, bool) { append_byte_characters(to, piece); });
  };
}

PreTokenizer parse_metaspace(Fields& fields) {
  const Metaspace metaspace = Metaspace::parse(fields);
  const Pattern replacement(metaspace.replacement);
  const Pattern space(std::string(" "));
  return [metaspace, replacement, space](Pieces& pieces) {
    pieces.rewrite([&](std::string& to, std::string_view piece, bool at_start) {
      const bool wanted = metaspace.scheme == Metaspace::Scheme::kAlways ||
                          (metaspace.scheme == Metaspace::Scheme::kFirst && at_start);
      if (wanted && !piece.starts_with(' ') && !piece.starts_with(metaspace.replacement)) {
        to += metaspace.replacement;
      }
      to += space.replace_all(piece, metaspace.replacement);
    });
    if (metaspace.split) {
      splitter(replacement, SplitBehavior::kMergedWithNext, false)(pieces);
    }
  };
}

PreTokenizer parse_digits(Fields& fields) {
  const bool individual = fields.flag_or("individual_digits", false);
  return character_splitter(is_numeric,
                            individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous);
}

PreTokenizer parse_sequence(Fields& fields) {
  std::vector<PreTokenizer> steps;
  for (const Json& step : fields.array("pretokenizers")) {
    steps.push_back(parse_pre_tokenizer(
        step, fmt::format("{}.pretokenizers[{}]", fields.where(), steps.size())));
  }
  return [steps = std::move(steps)](Pieces& pieces) {
    for (const PreTokenizer& step : steps) {
      step(pieces);
    }
  };
}

PreTokenizer parse_typed(const std::string& type, Fields& fields) {
  if (type == "Split") {
    return parse_split(fields);
  }
  if (type == "ByteLevel") {
    return parse_byte_level(fields);
  }
  if (type == "Metaspace") {
    return parse_metaspace(fields);
  }
  if (type == "Sequence") {
    return parse_sequence(fields);
  }
  if (type == "Digits") {
    return parse_digits(fields);
  }
  if (type == "Punctuation") {
    return character_splitter(is_punctuation, parse_split_behavior(fields));
  }
  if (type == "Whitespace") {
    return splitter(
        Pattern(Regex(R"(\w+|[^\w\s]+)", fields.where())), SplitBehavior::kRemoved, true);
  }
  if (type == "WhitespaceSplit") {
    return character_splitter(is_whitespace, SplitBehavior::kRemoved);
  }
  fields.not_supported(fmt::format("a pre-tokenizer of type \"{}\"", type));
}

}  // namespace

PreTokenizer parse_pre_tokenizer(const Json& json, const std::string& where) {
  Fields fields(json, where);
  PreTokenizer pre_tokenizer = parse_typed(fields.string("type"), fields);
  fields.refuse_others();
  return pre_tokenizer;
}

PreTokenizer isolating_pre_tokenizer(const Regex& regex) {
  return splitter(Pattern(regex), SplitBehavior::kIsolated, false);
}

}  // namespace zeroth::text
