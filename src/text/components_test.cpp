#include "base/json.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/utf8.h"
#include <gtest/gtest.h>

namespace zeroth::text {
namespace {

using Strings = std::vector<std::string>;

Json json(const char* text) {
  return parse_json(text, "test", ErrorKind::kFormat);
}

std::string normalized(const char* normalizer, std::string text) {
  parse_normalizer(json(normalizer), "normalizer")(text);
  return text;
}

Strings pieces_of(const char* pre_tokenizer, std::string text) {
  Pieces pieces(std::move(text), true);
  parse_pre_tokenizer(json(pre_tokenizer), "pre_tokenizer")(pieces);
  Strings out;
  for (const Span& span : pieces.spans()) {
    out.emplace_back(pieces[span]);
  }
  return out;
}

std::string decoded(const char* decoder, Strings tokens) {
  parse_decoder(json(decoder), "decoder")(tokens);
  std::string out;
  for (const std::string& token : tokens) {
    out += token;
  }
  return out;
}

TEST(Utf8, FindsWhatIsBroken) {
  EXPECT_FALSE(first_invalid_utf8("plain text of some length, \u00e9\u4e2d\U0001F600"));
  EXPECT_EQ(first_invalid_utf8("ab\xC0\xAF"), 2U);                // overlong
  EXPECT_EQ(first_invalid_utf8("\xED\xA0\x80"), 0U);              // a surrogate
  EXPECT_EQ(first_invalid_utf8("01234567\xF4\x90\x80\x80"), 8U);  // beyond U+10FFFF
  EXPECT_EQ(first_invalid_utf8("a\xE4\xB8"), 1U);                 // cut short
}

TEST(Utf8, ReplacesEachMaximalBrokenSequence) {
  EXPECT_EQ(with_replacements("a\xE4\xB8"
                              "b"),
            "a\uFFFDb");
  EXPECT_EQ(with_replacements("\xFF\xFE"), "\uFFFD\uFFFD");
  EXPECT_EQ(with_replacements("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(with_replacements("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(with_replacements("\u4e2d"), "\u4e2d");
}

TEST(Normalizer, UnicodeForms) {
  EXPECT_EQ(normalized(R"({"type": "NFC"})", "e\u0301"), "\u00e9");
  EXPECT_EQ(normalized(R"({"type": "NFD"})", "\u00e9"), "e\u0301");
  EXPECT_EQ(normalized(R"({"type": "NFKC"})", "\ufb01"), "fi");
  EXPECT_EQ(normalized(R"({"type": "NFC"})", std::string("\0\u00e9", 3)),
            std::string("\0\u00e9", 3));
}

TEST(Normalizer, TextChanges) {
  EXPECT_EQ(normalized(R"({"type": "Lowercase"})", "A\u00c9"), "a\u00e9");
  EXPECT_EQ(normalized(R"({"type": "Strip"})", " \u3000a \n"), "a");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": false, "strip_right": true})", " a "),
            " a");
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "_"})", "a"), "_a");
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "_"})", ""), "");
  EXPECT_EQ(
      normalized(R"({"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": "-"})", "a  b\nc"),
      "a-b-c");
  EXPECT_EQ(
      normalized(
          R"({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]})",
          "\u00e9t\u00e9"),
      "ete");
}

TEST(PreTokenizer, SplitBehaviors) {
  const auto split = [](const std::string& behavior, const char* invert = "false") {
    return pieces_of((R"({"type": "Split", "pattern": {"String": "-"}, "behavior": ")" + behavior +
                      R"(", "invert": )" + invert + "}")
                         .c_str(),
                     "-the--final-");
  };
  EXPECT_EQ(split("Removed"), (Strings{"the", "final"}));
  EXPECT_EQ(split("Isolated"), (Strings{"-", "the", "-", "-", "final", "-"}));
  EXPECT_EQ(split("MergedWithPrevious"), (Strings{"-", "the-", "-", "final-"}));
  EXPECT_EQ(split("MergedWithNext"), (Strings{"-the", "-", "-final", "-"}));
  EXPECT_EQ(split("Contiguous"), (Strings{"-", "the", "--", "final", "-"}));
  EXPECT_EQ(split("Removed", "true"), (Strings{"-", "-", "-", "-"}));
}

TEST(PreTokenizer, ByteLevelMapsAndCuts) {
  EXPECT_EQ(pieces_of(R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})",
                      "Hi there\n\u00e9"),
            (Strings{"Hi", "\u0120there", "\u010a", "\u00c3\u00a9"}));
  EXPECT_EQ(
      pieces_of(R"({"type": "ByteLevel", "add_prefix_space": true, "use_regex": false})", "a b"),
      (Strings{"\u0120a\u0120b"}));
}

TEST(PreTokenizer, Metaspace) {
  const char* first =
      R"({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true})";
  EXPECT_EQ(pieces_of(first, "a b"), (Strings{"\u2581a", "\u2581b"}));
  EXPECT_EQ(pieces_of(first, " a"), (Strings{"\u2581a"}));
  const char* whole =
      R"({"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": false, "split": false})";
  EXPECT_EQ(pieces_of(whole, "a b"), (Strings{"a\u2581b"}));
}

TEST(PreTokenizer, CharacterClasses) {
  EXPECT_EQ(pieces_of(R"({"type": "Digits", "individual_digits": true})", "a12"),
            (Strings{"a", "1", "2"}));
  EXPECT_EQ(pieces_of(R"({"type": "Digits", "individual_digits": false})", "a12"),
            (Strings{"a", "12"}));
  EXPECT_EQ(pieces_of(R"({"type": "Whitespace"})", "it's  5!"),
            (Strings{"it", "'", "s", "5", "!"}));
  EXPECT_EQ(pieces_of(R"({"type": "WhitespaceSplit"})", "it's  5!"), (Strings{"it's", "5!"}));
  EXPECT_EQ(pieces_of(R"({"type": "Punctuation"})", "a\u3002b!"),
            (Strings{"a", "\u3002", "b", "!"}));
}

TEST(Decoder, ByteFallbackNeedsTheWholeRun) {
  const char* decoder = R"({"type": "ByteFallback"})";
  EXPECT_EQ(decoded(decoder, {"a", "<0xE4>", "<0xB8>", "<0xAD>", "b"}), "a\u4e2db");
  EXPECT_EQ(decoded(decoder, {"<0xE4>", "<0xB8>", "b"}), "\uFFFD\uFFFDb");
  EXPECT_EQ(decoded(decoder, {"<0xZZ>"}), "<0xZZ>");
}

TEST(Decoder, OtherSteps) {
  EXPECT_EQ(decoded(R"({"type": "ByteLevel"})", {"\u0120a", "\u00c3"}), " a\uFFFD");
  EXPECT_EQ(decoded(R"({"type": "ByteLevel"})", {"<a b>"}),
            "<a b>");  // a space is no byte character
  EXPECT_EQ(decoded(R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})", {"  a", " b"}),
            " ab");
  EXPECT_EQ(decoded(R"({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"})",
                    {"\u2581a", "\u2581b"}),
            "a b");
}

TEST(PostProcessor, PutsTokensAround) {
  const Surroundings around = parse_post_processor(json(R"({"type": "TemplateProcessing",
               "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                          {"SpecialToken": {"id": "</s>", "type_id": 0}}],
               "pair": [],
               "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]},
                                  "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}})"),
                                                   "post_processor");
  EXPECT_EQ(around.before, (std::vector<TokenId>{1}));
  EXPECT_EQ(around.after, (std::vector<TokenId>{2}));
}

Strings parts_of(const AddedTokenMatcher& matcher, std::string_view text) {
  Strings out;
  for (const auto& part : matcher.split(text)) {
    out.push_back((part.id == kNoToken ? "" : std::to_string(part.id) + ":") +
                  std::string(part.text));
  }
  return out;
}

TEST(AddedTokens, LongestMatchWins) {
  AddedTokenMatcher matcher;
  matcher.add({.id = 1, .content = "<a>"}, "<a>");
  matcher.add({.id = 2, .content = "<a>b"}, "<a>b");
  EXPECT_EQ(parts_of(matcher, "x<a>b<a>c"), (Strings{"x", "2:<a>b", "1:<a>", "c"}));
  EXPECT_EQ(parts_of(matcher, "<a"), (Strings{"<a"}));
}

TEST(AddedTokens, StripsAndWholeWords) {
  AddedTokenMatcher matcher;
  matcher.add({.id = 1, .content = "<l>", .lstrip = true}, "<l>");
  matcher.add({.id = 2, .content = "<r>", .rstrip = true}, "<r>");
  matcher.add({.id = 3, .content = "word", .single_word = true}, "word");
  EXPECT_EQ(parts_of(matcher, "a  <l> b"), (Strings{"a", "1:  <l>", " b"}));
  EXPECT_EQ(parts_of(matcher, "a <r>  b"), (Strings{"a ", "2:<r>  ", "b"}));
  EXPECT_EQ(parts_of(matcher, "a <r> <l>"), (Strings{"a ", "2:<r> ", "1:<l>"}));
  EXPECT_EQ(parts_of(matcher, "word words a-word"), (Strings{"3:word", " words a-", "3:word"}));
}

struct Model {
  Model(BpeSettings settings, const Strings& tokens, const std::vector<Bpe::MergeRule>& merges)
      : bpe(std::move(settings), table(tokens), merges, "test") {}

  static TokenTable table(const Strings& tokens) {
    TokenTable vocabulary;
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      vocabulary.add(tokens[id], static_cast<TokenId>(id));
    }
    return vocabulary;
  }

  std::vector<TokenId> encode(std::string_view text) const {
    PairMerger merger(bpe.merges());
    std::vector<TokenId> symbols, ids;
    bpe.encode(text, merger, symbols, ids);
    return ids;
  }

  Bpe bpe;
};

using Ids = std::vector<TokenId>;

TEST(Bpe, LowestRankThenLeftmost) {
  const Model model({}, {"a", "b", "ab", "aa", "aab"}, {{"a", "a"}, {"a", "b"}, {"aa", "b"}});
  EXPECT_EQ(model.encode("aaab"), (Ids{3, 2}));  // aa first, then ab of what is left
  EXPECT_EQ(model.encode("aab"), (Ids{4}));
  EXPECT_EQ(model.encode("aaa"), (Ids{3, 0}));
}

TEST(Bpe, UnknownCharacters) {
  const Strings tokens = {"<unk>", "a"};
  EXPECT_EQ(Model({}, tokens, {}).encode("xay"), (Ids{1}));
  EXPECT_EQ(Model({.unk_token = "<unk>"}, tokens, {}).encode("xya"), (Ids{0, 0, 1}));
  EXPECT_EQ(Model({.unk_token = "<unk>", .fuse_unk = true}, tokens, {}).encode("xya"), (Ids{0, 1}));
}

TEST(Bpe, FallsBackToBytesOnlyIfAllOfThemAreTokens) {
  const Strings tokens = {"<unk>", "<0xC3>", "<0xA9>"};
  const Model model({.unk_token = "<unk>", .byte_fallback = true}, tokens, {});
  EXPECT_EQ(model.encode("\u00e9"), (Ids{1, 2}));
  EXPECT_EQ(model.encode("\u00e8"), (Ids{0}));
}

TEST(Bpe, IgnoreMergesTakesWholePieces) {
  const Strings tokens = {"a", "b", "c", "ab", "bc", "abc"};
  const std::vector<Bpe::MergeRule> merges = {{"b", "c"}};
  EXPECT_EQ(Model({}, tokens, merges).encode("abc"), (Ids{0, 4}));
  EXPECT_EQ(Model({.ignore_merges = true}, tokens, merges).encode("abc"), (Ids{5}));
}

}  // namespace
}  // namespace zeroth::text
