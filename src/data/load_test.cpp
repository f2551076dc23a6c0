#include "data/load.h"

#include <algorithm>

#include "data/test_support.h"
#include <gtest/gtest.h>
#include <zlib.h>

namespace zeroth::data {
namespace {

using test::byte_tokenizer;
using test::error_of;
using test::ids_of;
using test::kBos;
using test::kEos;
using test::TemporaryFolder;

using Ids = std::vector<text::TokenId>;

Ids operator+(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// One member.
std::string gzip(std::string content) {
  z_stream stream{};
  constexpr int kGzip = 16 + MAX_WBITS;
  ::deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY);
  std::string packed(::deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(content.data());
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(::deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

class Load : public ::testing::Test {
 protected:
  Dataset load(const std::string& name, std::string_view content) {
    return load_examples({folder_.write(name, content)}, tokenizer_, settings_);
  }

  Dataset load_row(const std::string& row) { return load("row.jsonl", row); }

  std::string refusal(const std::string& name,
                      std::string_view content,
                      ErrorKind kind = ErrorKind::kData) {
    return error_of(kind, [&] { (void)load(name, content); });
  }

  TemporaryFolder folder_;
  text::Tokenizer tokenizer_ = byte_tokenizer(folder_);
  LoadSettings settings_{.embedding_rows = test::kByteVocabulary};
};

constexpr const char* kSixAndFour = R"({"instruction": "abcde", "output": "xyz"})";

TEST_F(Load, D08_TheLastLabelOfAnUntruncatedRowIsTheEndToken) {
  for (const char* name : {"empty", "default", "alpaca"}) {
    settings_.prompt_template = name;
    const Dataset dataset = load_row(kSixAndFour);
    const Ids& labels = dataset.examples.at(0).labels;
    const auto last =
        std::find_if(labels.rbegin(), labels.rend(), [](auto id) { return id != kIgnoreLabel; });
    ASSERT_NE(last, labels.rend());
    EXPECT_EQ(*last, kEos) << name;
  }
}

TEST_F(Load, D09_OnlyTheAnswerIsTrainedUnlessAsked) {
  Dataset dataset = load_row(kSixAndFour);
  EXPECT_EQ(dataset.num_tokens, 10);
  EXPECT_EQ(dataset.num_targets, 4);
  settings_.trains = Trains::kEverything;
  dataset = load_row(kSixAndFour);
  EXPECT_EQ(dataset.examples[0].labels, dataset.examples[0].input_ids);
  EXPECT_EQ(dataset.num_targets, 9);  // the first of ten is never predicted
}

TEST_F(Load, D10_TheMaskEndsWhereTheAnswerBegins) {
  const Example example = load_row(kSixAndFour).examples.at(0);
  EXPECT_EQ(example.input_ids, Ids{kBos} + ids_of("abcdexyz") + Ids{kEos});
  EXPECT_EQ(example.labels, Ids(6, kIgnoreLabel) + ids_of("xyz") + Ids{kEos});
}

TEST_F(Load, D11_EveryTurnsAnswerIsTrained) {
  settings_.prompt_template = "default";
  const Example example =
      load_row(R"({"instruction": "q", "output": "b", "history": [["p", "a"]]})").examples.at(0);
  Ids trained;
  std::copy_if(
      example.labels.begin(), example.labels.end(), std::back_inserter(trained), [](auto id) {
        return id != kIgnoreLabel;
      });
  EXPECT_EQ(trained, ids_of("a") + Ids{kEos} + ids_of("b") + Ids{kEos});
}

TEST_F(Load, D12_ARowWithoutATargetLeftIsDroppedAndCounted) {
  settings_.cutoff_len = 8;
  const Dataset dataset = load("d.jsonl", R"({"instruction": "123456789", "output": "ab"}
{"instruction": ")" + std::string(99, 'x') + R"(", "output": "abc"}
)");
  EXPECT_EQ(dataset.counts.read, 2);
  EXPECT_EQ(dataset.counts.kept, 1);
  EXPECT_EQ(dataset.counts.dropped_unlabelled, 1);
  EXPECT_EQ(dataset.counts.truncated, 1);
  EXPECT_EQ(dataset.counts.tokens_cut, 5);
  EXPECT_EQ(dataset.examples[0].input_ids, Ids{kBos} + ids_of("1234ab") + Ids{kEos});
}

TEST_F(Load, D12_TheEndTokenOfACutAnswerIsNotForced) {
  settings_.cutoff_len = 8;
  const Dataset dataset = load_row(R"({"instruction": "1", "output": "abcdefghij"})");
  EXPECT_EQ(dataset.examples[0].input_ids, Ids{kBos} + ids_of("1abcdef"));
}

TEST_F(Load, D13_TruncationIsCounted) {
  settings_.cutoff_len = 10;
  const Dataset dataset = load("d.jsonl", R"({"instruction": "abcde", "output": "xyz"}
{"instruction": "abcdefgh", "output": "xyz"}
{"instruction": "abcdefghi", "output": "xyz"})");
  EXPECT_EQ(dataset.counts.truncated, 2);
  EXPECT_EQ(dataset.counts.tokens_cut, 3 + 4);
  EXPECT_EQ(dataset.counts.kept, 3);
}

TEST_F(Load, D14_OneBosAtTheStartAndTextThatSpellsItIsCounted) {
  for (const char* name : {"empty", "default", "alpaca"}) {
    settings_.prompt_template = name;
    const Dataset dataset =
        load_row(R"({"instruction": "q", "output": "b", "history": [["p", "a"]]})");
    const Ids& ids = dataset.examples.at(0).input_ids;
    EXPECT_EQ(ids.at(0), kBos);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), kBos), 1) << name;
    EXPECT_EQ(dataset.counts.bos_in_text, 0);
  }
  EXPECT_EQ(load_row(R"({"instruction": "<s>q", "output": "b"})").counts.bos_in_text, 1);
}

TEST_F(Load, D15_AnIdBeyondTheEmbeddingIsNamed) {
  settings_.embedding_rows = 128;
  const std::string message = refusal("d.jsonl",
                                      R"({"instruction": "A", "output": "B"}
{"instruction": "A", "output": "~"})",
                                      ErrorKind::kModel);
  EXPECT_HAS(message, "token id 129 (\"~\") >= embedding rows 128, row 2 of ");
  EXPECT_HAS(message, "d.jsonl");
}

TEST_F(Load, D19_MalformedRowsAreListedOrCounted) {
  const std::string rows = R"({"instruction": "a", "output": "b"}
{"instruction": "a", "output": {"a": 1}}
{"instruction": "a", "ouput": "b"}
)";
  const std::string message = refusal("data.jsonl", rows);
  EXPECT_HAS(message, "2 of 3 rows cannot be used");
  EXPECT_HAS(message, R"(data.jsonl:2: "output": expected string, got object)");
  EXPECT_HAS(message, R"(data.jsonl:3: missing "output" (found "ouput"))");
  EXPECT_HAS(message, "--skip_bad_rows");
  settings_.skip_bad_rows = true;
  const Dataset dataset = load("data.jsonl", rows);
  EXPECT_EQ(dataset.counts.kept, 1);
  EXPECT_EQ(dataset.counts.read, 3);
  EXPECT_EQ(dataset.counts.dropped_bad, 2);
}

TEST_F(Load, BadRowsOfAllFilesComeInOneError) {
  const auto a = folder_.write("a.json", "[\n {\"instruction\": \"a\"},\n {\"output\": \"b\"}\n]");
  const auto b =
      folder_.write("b.jsonl", "{\"instruction\": \"a\", \"output\": \"b\"}\n{\"instruction\"\n");
  const std::string message = error_of(ErrorKind::kData, [&] {
    (void)load_examples({a, b}, tokenizer_, settings_);
  });
  EXPECT_HAS(message, "3 of 4 rows cannot be used");
  EXPECT_HAS(message, "a.json:2 (row 1): missing \"output\"");
  EXPECT_HAS(message, "a.json:3 (row 2): missing \"instruction\"");
  EXPECT_HAS(message, "b.jsonl:2:15 is not valid JSON");
}

TEST_F(Load, ALongListOfBadRowsIsCappedWithItsCount) {
  std::string rows = "{\"instruction\": \"a\", \"output\": \"b\"}\n";
  for (int i = 0; i < 30; ++i) {
    rows += "{\"instruction\": \"a\"}\n";
  }
  const std::string message = refusal("data.jsonl", rows);
  EXPECT_HAS(message, "30 of 31 rows");
  EXPECT_HAS(message, "data.jsonl:21:");
  EXPECT_EQ(message.find("data.jsonl:22:"), std::string::npos);
  EXPECT_HAS(message, "... and 10 more");
}

TEST_F(Load, BytesThatAreNotUtf8AreABadRow) {
  const std::string rows =
      "[{\"instruction\": \"a\", \"output\": \"b\"},\n{\"instruction\": \"\xff\", \"output\": "
      "\"b\"}]";
  EXPECT_HAS(refusal("d.json", rows), "d.json:2: byte 0xff at line 2, column 18 is not UTF-8");
  settings_.skip_bad_rows = true;
  EXPECT_EQ(load("d.json", rows).counts.kept, 1);
}

TEST_F(Load, AnEmptyAnswerIsDroppedAndCounted) {
  const Dataset dataset = load("d.json", R"([{"instruction": "a", "output": ""},
 {"instruction": "a", "output": " \n\u3000"}, {"instruction": "a", "output": "b"}])");
  EXPECT_EQ(dataset.counts.dropped_empty, 2);
  EXPECT_EQ(dataset.counts.kept, 1);
  EXPECT_EQ(dataset.examples[0].row, 0);
}

TEST_F(Load, NoUsableRowIsAnErrorWithTheCounts) {
  const std::string message = refusal("d.json", R"([{"instruction": "a", "output": ""}])");
  EXPECT_HAS(message, "no usable row in ");
  EXPECT_HAS(message, "Of 1 rows read");
  EXPECT_HAS(message, "1 had an empty answer");
  EXPECT_HAS(refusal("e.json", "[]"), "Of 0 rows read");
}

TEST_F(Load, AFileOfAnotherFormatIsNamedOnce) {
  settings_.skip_bad_rows = true;  // no help against a wrong format
  const std::string message =
      refusal("d.jsonl", "{\"chosen\": 1, \"rejected\": 2}\n{\"chosen\": 1, \"rejected\": 2}\n");
  EXPECT_HAS(message, "d.jsonl: preference rows (\"chosen\", \"rejected\") are not supported");
  EXPECT_EQ(message.find("rows cannot be used"), std::string::npos);
}

TEST_F(Load, AForeignFileDoesNotHideTheBadRowsOfAnother) {
  const auto a = folder_.write("a.jsonl", "{\"instruction\": \"a\"}\n");
  const auto b = folder_.write("b.jsonl", "{\"chosen\": 1, \"rejected\": 2}\n");
  const std::string message = error_of(ErrorKind::kData, [&] {
    (void)load_examples({a, b}, tokenizer_, settings_);
  });
  EXPECT_HAS(message, "b.jsonl: preference rows");
  EXPECT_HAS(message, "a.jsonl:1: missing \"output\"");
}

TEST_F(Load, FilesThatAreNoDataFiles) {
  EXPECT_HAS(refusal("d.tsv", "a\tb\n", ErrorKind::kNotSupported), "\".tsv\" is not supported");
  EXPECT_HAS(refusal("d.parquet", "PAR1", ErrorKind::kNotSupported),
             "\".parquet\" is not supported");
  EXPECT_HAS(refusal("d.json", " \n"), "is empty");
  EXPECT_HAS(refusal("d.json", "\xff\xfe[\0"), "is UTF-16");
  EXPECT_HAS(refusal("d.json", "instruction: a"), "d.json:1:1 is not valid JSON");
  EXPECT_HAS(refusal("d.json", "[\n{\"instruction\": \"a\", \"output\": b}]"),
             "d.json:2:32 is not valid JSON");
  EXPECT_HAS(refusal("d.txt", "once upon a time"), "--stage pt");
  EXPECT_HAS(
      error_of(ErrorKind::kData,
               [&] { (void)load_examples({folder_.path() / "no.json"}, tokenizer_, settings_); }),
      "there is no data file");
  EXPECT_HAS(error_of(ErrorKind::kNotSupported,
                      [&] { (void)load_examples({folder_.path()}, tokenizer_, settings_); }),
             "is a folder");
}

TEST_F(Load, CsvRowsAreRowsLikeOthers) {
  const Dataset dataset =
      load("d.csv", "output,instruction\r\n\"x\"\"y\nz\",abc\r\n\r\nxyz,\"a,b\"\n");
  ASSERT_EQ(dataset.counts.kept, 2);
  EXPECT_EQ(dataset.examples[0].input_ids, Ids{kBos} + ids_of("abcx\"y\nz") + Ids{kEos});
  EXPECT_EQ(dataset.examples[1].input_ids, Ids{kBos} + ids_of("a,bxyz") + Ids{kEos});
}

TEST_F(Load, WhatIsWrongWithACsvFileIsSaidWithItsLine) {
  const std::string bad = refusal("d.csv", "instruction,output\n\"a\nb\",c\nd\ne,f,g\nh,\xff\n");
  EXPECT_HAS(bad, "d.csv:4 (row 2): 1 fields, and 2 columns have names");
  EXPECT_HAS(bad, "d.csv:5 (row 3): 3 fields");
  EXPECT_HAS(bad, "d.csv:6 (row 4): byte 0xff at line 6");
  EXPECT_HAS(refusal("e.csv", "a,a\n1,2\n"), "two columns are named \"a\"");
  EXPECT_HAS(refusal("f.csv", "a,\n1,2\n"), "a column has no name");
  EXPECT_HAS(refusal("g.csv", "instruction,output\n\"a,b\n"),
             "g.csv:2: a quote opens here and never closes");
  EXPECT_HAS(refusal("h.csv", "instruction,output\n\"a\"b,c\n"), "behind the closing quote");
  EXPECT_HAS(refusal("i.csv", "question,answer\na,b\n"), "--dataset_columns");
  EXPECT_HAS(refusal("j.csv", "instruction,output\n"), "Of 0 rows read");
}

// By their content, since names are changed on the way.
TEST_F(Load, FilesPackedByGzipAreUnpacked) {
  const std::string row = kSixAndFour;
  const std::string packed = gzip(row + "\n") + gzip(row + "\n");  // two members, as `cat` joins
  EXPECT_EQ(load("d.jsonl.gz", packed).counts.kept, 2);
  EXPECT_EQ(load("d.jsonl", packed).counts.kept, 2);
  EXPECT_HAS(refusal("e.jsonl.gz", packed.substr(0, packed.size() - 3)), "ends too early");
  std::string broken = packed;
  broken[packed.size() / 4] ^= 0x55;
  EXPECT_HAS(refusal("f.jsonl.gz", broken), "gzip data");
  EXPECT_HAS(refusal("g.jsonl.gz", packed + "x"), "something else behind");
}

TEST_F(Load, AMappingAndASystemTextOfTheRun) {
  settings_.columns = named_columns(std::vector<std::string>{"prompt=q", "response=a"}, "here");
  settings_.prompt_template = "alpaca";
  settings_.default_system = "S";
  const Dataset dataset = load("d.json", R"([{"q": "x", "a": "y", "instruction": "not this"}])");
  EXPECT_EQ(dataset.examples.at(0).input_ids,
            Ids{kBos} + ids_of("S\n\n### Instruction:\nx\n\n### Response:\ny") + Ids{kEos});
}

// Each answer and its end token, no header and no question (case D11).
TEST_F(Load, D11_EveryAnswerOfAChatIsTrainedAndNothingElse) {
  settings_.prompt_template = "default";
  const std::string chat =
      R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "bc"},
          {"role": "user", "content": "d"}, {"role": "assistant", "content": "ef"}])";
  const auto labels_of = [&] {
    Ids labels = load("d.json", "[" + chat + "]").examples.at(0).labels;
    std::erase(labels, kIgnoreLabel);
    return labels;
  };
  EXPECT_EQ(labels_of(), ids_of("bc") + Ids{kEos} + ids_of("ef") + Ids{kEos});
  settings_.trains = Trains::kLastAnswer;
  EXPECT_EQ(labels_of(), ids_of("ef") + Ids{kEos});
}

TEST_F(Load, AByteOrderMarkIsNoPartOfTheText) {
  EXPECT_EQ(load("d.json", std::string("\xef\xbb\xbf") + "[" + kSixAndFour + "]").counts.kept, 1);
}

TEST_F(Load, MaxSamplesTakesTheFirstRowsOfEachFile) {
  settings_.max_samples = 2;
  const auto a =
      folder_.write("a.jsonl",
                    "{\"instruction\": \"a\", \"output\": \"1\"}\n{\"instruction\": \"a\", "
                    "\"output\": \"2\"}\n{\"broken");
  const auto b = folder_.write("b.json", R"([{"instruction": "a", "output": "3"}])");
  const Dataset dataset = load_examples({a, b}, tokenizer_, settings_);
  ASSERT_EQ(dataset.examples.size(), 3U);
  EXPECT_EQ(dataset.examples[1].input_ids, Ids{kBos} + ids_of("a2") + Ids{kEos});
  EXPECT_EQ(dataset.examples[2].row, 2);
}

TEST_F(Load, TheFingerprintSeesEveryIdLabelAndBorder) {
  const auto fingerprint = [&](const std::string& row) { return load_row(row).fingerprint; };
  const auto base = fingerprint(kSixAndFour);
  EXPECT_EQ(base, fingerprint(kSixAndFour));
  EXPECT_NE(base, fingerprint(R"({"instruction": "abcdf", "output": "xyz"})"));
  EXPECT_NE(base, fingerprint(R"({"instruction": "abcd", "output": "exyz"})"));
}

TEST_F(Load, ACutoffWithoutRoomForATargetIsRefused) {
  settings_.cutoff_len = 1;
  EXPECT_HAS(refusal("d.json", kSixAndFour, ErrorKind::kConfig), "cutoff_len 1");
}

}  // namespace
}  // namespace zeroth::data
