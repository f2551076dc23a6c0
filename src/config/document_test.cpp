#include "config/document.h"

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "config/case_support.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

Node json(const std::string& text) {
  Problems problems;
  Node node = read_json(text, "f.json", problems);
  EXPECT_TRUE(problems.empty()) << text;
  return node;
}

Node yaml(const std::string& text) {
  Problems problems;
  Node node = read_yaml(text, "f.yaml", problems);
  EXPECT_TRUE(problems.empty()) << text;
  return node;
}

template <typename Read>
std::string error_of(Read read, const std::string& text, const std::string& name) {
  Problems problems;
  try {
    (void)read(text, name, problems);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    return error.what();
  }
  return "accepted";
}

std::string json_error(const std::string& text) {
  return error_of(read_json, text, "f.json");
}

std::string yaml_error(const std::string& text) {
  return error_of(read_yaml, text, "f.yaml");
}

std::string repeated(const std::string& part, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) {
    text += part;
  }
  return text;
}

// ---- JSON ----

TEST(JsonDocument, KeepsKindsTextsAndLines) {
  const Node node = json("{\n \"a\": 1e3,\n \"b\": {\"c\": \"x\", \"d\": [true, null]}}");
  ASSERT_EQ(node.members.size(), 2U);
  EXPECT_EQ(node.members[0].value.kind, Node::Kind::kNumber);
  EXPECT_EQ(node.members[0].value.text, "1e3");
  EXPECT_EQ(node.members[0].line, 2U);
  const Node& inner = node.members[1].value;
  EXPECT_EQ(inner.members[0].value.kind, Node::Kind::kText);
  EXPECT_EQ(inner.members[1].value.items[0].kind, Node::Kind::kBoolean);
  EXPECT_EQ(inner.members[1].value.items[1].kind, Node::Kind::kNull);
  EXPECT_EQ(inner.members[1].line, 3U);
  EXPECT_EQ(to_json(node), Json::parse(R"({"a": 1e3, "b": {"c": "x", "d": [true, null]}})"));
}

TEST(JsonDocument, CommentsAndTrailingCommasAreNoContent) {
  const Node node =
      json("\xEF\xBB\xBF// one\n{ # two\n \"a\" /* three\n */ : [1, 2,], // four\n}#");
  EXPECT_EQ(to_json(node), Json::parse(R"({"a": [1, 2]})"));
  EXPECT_EQ(node.members[0].line, 3U);
  EXPECT_EQ(json("{\"url\": \"http://x#y\"}").members[0].value.text, "http://x#y");
}

TEST(JsonDocument, SaysWhereItEnds) {
  EXPECT_EQ(json_error("{\"a\": 1,\n \"b\" 2}"),
            "f.json:2:6 is not valid JSON: a colon is expected after \"b\", not '2'");
  EXPECT_TRUE(has(json_error("{\"a\": 1 \"b\": 2}"), "f.json:1:9 is not valid JSON: ',' or '}'"));
  EXPECT_TRUE(has(json_error("{\"a\": tru}"), "tru is no value: texts stand in quotes"));
  EXPECT_TRUE(has(json_error("{'a': 1}"), "a key in quotes is expected, not '''"));
  EXPECT_TRUE(has(json_error("{\"a\": [1, 2"), "']'"));
  EXPECT_TRUE(has(json_error("{\"a\": "), "a value is expected, not the end of the file"));
  EXPECT_TRUE(has(json_error("{} {}"), "'{' after the end of the configuration"));
  EXPECT_TRUE(has(json_error("[1]"), "a configuration starts with {"));
  EXPECT_TRUE(has(json_error("{\"a\": 1} /* never"), "a comment /* that never ends"));
  EXPECT_TRUE(has(json_error("{\"a\": \"x\n\"}"), "quotes are not closed on this line"));
  EXPECT_TRUE(has(json_error("{\"a\": \"x"), "quotes that are never closed"));
  EXPECT_TRUE(has(json_error("{,}"), "a key in quotes is expected"));
  EXPECT_TRUE(has(json_error("{\"a\": 1,,}"), "a key in quotes is expected"));
  EXPECT_TRUE(has(json_error(std::string("{\"a\": 1\0}", 9)), "byte 0x00"));
}

TEST(JsonDocument, NumbersAreWrittenAsInJson) {
  for (const char* good : {"0", "-0", "1.5", "2e8", "2E+8", "-1e-5"}) {
    EXPECT_EQ(json(std::string("{\"a\": ") + good + "}").members[0].value.text, good);
  }
  for (const char* bad : {"01", "-", "1.", ".5", "1e", "1e+", "--1"}) {
    EXPECT_NE(json_error(std::string("{\"a\": ") + bad + "}"), "accepted") << bad;
  }
  for (const char* bad : {"NaN", "Infinity", "0x10", "1_000", "+1"}) {
    EXPECT_NE(json_error(std::string("{\"a\": ") + bad + "}"), "accepted") << bad;
  }
}

TEST(JsonDocument, BlocksInOneAnotherHaveALimit) {
  EXPECT_EQ(json_error("{\"a\": " + repeated("[", 60) + repeated("]", 60) + "}"), "accepted");
  EXPECT_TRUE(has(json_error("{\"a\": " + repeated("[", 100000)), "blocks in one another"));
  EXPECT_TRUE(has(json_error(repeated("{\"a\":", 100000)), "blocks in one another"));
}

TEST(JsonDocument, TextsAreUtf8) {
  EXPECT_EQ(json("{\"\xE4\xB8\xAD\": \"\xF0\x9F\x98\x80\"}").members[0].key, "\xE4\xB8\xAD");
  for (const char* bad : {"\xFF", "\xC0\x80", "\xE4\xB8", "\xED\xA0\x80", "\xF5\x80\x80\x80"}) {
    EXPECT_TRUE(has(json_error(std::string("{\"a\": \"") + bad + "\"}"), "is not UTF-8"));
  }
}

TEST(JsonDocument, EscapesAreReadAndSurrogatesComeInPairs) {
  EXPECT_EQ(json(R"({"a": "\u00e4\n\"\\\/"})").members[0].value.text, "\xC3\xA4\n\"\\/");
  EXPECT_EQ(json(R"({"a": "\ud83d\ude00"})").members[0].value.text, "\xF0\x9F\x98\x80");
  for (const char* bad : {R"(\ud83d)", R"(\ude00)", R"(\ud83d\u0041)", R"(\ud83dx)"}) {
    EXPECT_TRUE(
        has(json_error(std::string("{\"a\": \"") + bad + "\"}"), "half of a surrogate pair"))
        << bad;
  }
  EXPECT_TRUE(has(json_error(R"({"a": "\u12g4"})"), "four hexadecimal digits"));
  EXPECT_TRUE(has(json_error(R"({"a": "\x"})"), "\\ before 'x'"));
}

std::vector<std::string> duplicates(Node (*read)(std::string_view, const std::string&, Problems&),
                                    const std::string& text) {
  Problems problems;
  (void)read(text, "f", problems);
  std::vector<std::string> messages;
  for (const Problem& problem : problems.all()) {
    EXPECT_EQ(problem.kind, ProblemKind::kDuplicate);
    messages.push_back(problem.message);
  }
  return messages;
}

TEST(JsonDocument, EveryDuplicateIsNamedWithBothLines) {
  EXPECT_EQ(duplicates(read_json, "{\"a\": 1,\n\"b\": {\"c\": 1,\n\n\"c\": 1},\n\"a\": 2}"),
            (std::vector<std::string>{"f: duplicate key \"c\" (lines 2 and 4)",
                                      "f: duplicate key \"a\" (lines 1 and 5)"}));
  EXPECT_EQ(duplicates(read_json, R"({"a": {"c": 1}, "b": {"c": 1}})").size(), 0U);
  EXPECT_EQ(duplicates(read_json, R"({"a": 1, "\u0061": 2})").size(), 1U);
}

// ---- YAML ----

TEST(YamlDocument, TellsQuotedTextsFromPlainWords) {
  const Node node = yaml("a: 5\nb: '5'\nc: \"x\"\nd: [1, two]\ne: null\nf: ~\ng:\n");
  const auto kind = [&](std::size_t i) { return node.members[i].value.kind; };
  EXPECT_EQ(kind(0), Node::Kind::kPlain);
  EXPECT_EQ(kind(1), Node::Kind::kText);
  EXPECT_EQ(kind(2), Node::Kind::kText);
  EXPECT_EQ(node.members[3].value.items.size(), 2U);
  EXPECT_EQ(kind(4), Node::Kind::kNull);
  EXPECT_EQ(kind(5), Node::Kind::kNull);
  EXPECT_EQ(kind(6), Node::Kind::kNull);
  EXPECT_EQ(node.members[3].line, 4U);
}

TEST(YamlDocument, SaysWhereItEnds) {
  EXPECT_TRUE(has(yaml_error("a: [1,\n"), "f.yaml:")) << yaml_error("a: [1,\n");
  EXPECT_TRUE(has(yaml_error("a: b: c\n"), "f.yaml:1:")) << yaml_error("a: b: c\n");
  EXPECT_TRUE(has(yaml_error("\ta: 1\n"), "is not valid YAML")) << yaml_error("\ta: 1\n");
  EXPECT_TRUE(has(yaml_error("- 1\n- 2\n"), "a block of \"key: value\" lines"));
  EXPECT_TRUE(has(yaml_error("word\n"), "a block of \"key: value\" lines"));
  EXPECT_TRUE(has(yaml_error("a: *gone\n"), "is not valid YAML"));
  EXPECT_TRUE(has(yaml_error("? [1, 2]\n: 3\n"), "a key is a word"));
  EXPECT_TRUE(has(yaml_error(""), "the file is empty"));
  EXPECT_TRUE(has(yaml_error("---\n"), "the file is empty"));
}

TEST(YamlDocument, IsOneDocument) {
  EXPECT_EQ(yaml("---\na: 1\n").members.size(), 1U);
  EXPECT_TRUE(has(yaml_error("a: 1\n---\nb: 2\n"), "a second document"));
}

TEST(YamlDocument, TagsAndMergeKeysAreRefused) {
  EXPECT_TRUE(has(yaml_error("a: !!python/object:os.system x\n"), "means nothing here"))
      << yaml_error("a: !!python/object:os.system x\n");
  EXPECT_TRUE(has(yaml_error("a: &x {b: 1}\nc:\n  <<: *x\n"), "merge keys (<<) are not read"));
}

TEST(YamlDocument, AnAliasIsTheValueThatItNames) {
  const Node node = yaml("a: &size 32\nb: *size\n");
  EXPECT_EQ(node.members[1].value.text, "32");
}

TEST(YamlDocument, AliasesCannotStandForMoreThanAConfigurationHolds) {
  std::string bomb = fmt::format("a0: &a0 [{}]\n", repeated("1,", 10));
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{0}: &a{0} [{1}]\n", i, repeated(fmt::format("*a{},", i - 1), 10));
  }
  EXPECT_TRUE(has(yaml_error(bomb), "more than a configuration can"));
}

TEST(YamlDocument, BlocksInOneAnotherHaveALimit) {
  EXPECT_TRUE(has(yaml_error("a: " + repeated("[", 100) + repeated("]", 100)),
                  "more than a configuration can"));
  EXPECT_NE(yaml_error("a: " + repeated("[", 100000)), "accepted");
  EXPECT_NE(yaml_error("a: " + repeated("{b: ", 100000)), "accepted");
}

TEST(YamlDocument, EveryDuplicateIsNamedWithBothLines) {
  EXPECT_EQ(duplicates(read_yaml, "a: 1\nb:\n  c: 1\n  c: 2\n'a': 3\n"),
            (std::vector<std::string>{"f: duplicate key \"c\" (lines 3 and 4)",
                                      "f: duplicate key \"a\" (lines 1 and 5)"}));
}

// ---- files ----

TEST(ReadDocument, SaysWhatIsWrongWithTheFileItself) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("zeroth_document_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const auto error = [&](const std::filesystem::path& file) -> std::string {
    Problems problems;
    try {
      (void)read_document(file, file.filename().string(), "recipe", problems);
    } catch (const Error& wrong) {
      return wrong.what();
    }
    return "accepted";
  };
  EXPECT_TRUE(has(error(folder / "none.json"), "recipe not found: "));
  EXPECT_TRUE(has(error(folder), "recipe is not a file: "));
  std::ofstream(folder / "empty.yaml") << "  \n";
  EXPECT_TRUE(has(error(folder / "empty.yaml"), "the file is empty"));
  std::ofstream(folder / "large.json") << '{' << std::string((16U << 20U) + 1, ' ') << '}';
  EXPECT_TRUE(has(error(folder / "large.json"), "larger than 16 MiB"));
  std::ofstream(folder / "is_yaml.yml") << "a: 1\n";
  EXPECT_EQ(error(folder / "is_yaml.yml"), "accepted");
  std::ofstream(folder / "is_yaml.json") << "a: 1\n";
  EXPECT_TRUE(has(error(folder / "is_yaml.json"), "is not valid JSON"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace zeroth::config
