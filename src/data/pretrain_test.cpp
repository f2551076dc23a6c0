#include "data/pretrain.h"

#include "data/test_support.h"
#include <gtest/gtest.h>

namespace zeroth::data {
namespace {

using test::byte_tokenizer;
using test::error_of;
using test::id_of_byte;
using test::kBos;
using test::kEos;
using test::TemporaryFolder;

using Ids = std::vector<text::TokenId>;

class Pretrain : public ::testing::Test {
 protected:
  Dataset load(const Sources& files) { return load_examples(files, tokenizer_, settings_); }

  TemporaryFolder folder_;
  text::Tokenizer tokenizer_ = byte_tokenizer(folder_);
  LoadSettings settings_{
      .stage = Stage::kPretrain, .cutoff_len = 4, .embedding_rows = test::kByteVocabulary};
};

TEST(Packer, LosesNothingButASingleToken) {
  for (std::int64_t length = 0; length < 30; ++length) {
    std::vector<Example> rows;
    Packer packer(4, rows);
    Ids stream;
    for (text::TokenId id = 0; id < length; ++id) {
      packer.add(std::span(&id, 1));
      stream.push_back(id);
    }
    const std::int64_t lost = packer.finish();
    EXPECT_EQ(lost, length % 4 == 1 ? 1 : 0);
    Ids packed;
    for (const Example& row : rows) {
      EXPECT_EQ(row.labels, row.input_ids);
      packed.insert(packed.end(), row.input_ids.begin(), row.input_ids.end());
    }
    stream.resize(stream.size() - static_cast<std::size_t>(lost));
    EXPECT_EQ(packed, stream);
  }
}

TEST_F(Pretrain, PacksDocumentsBetweenBosAndEos) {
  const Dataset dataset =
      load({folder_.write("a.txt", "abc"), folder_.write("b.jsonl", "{\"text\": \"de\"}\n")});
  ASSERT_EQ(dataset.examples.size(), 2U);
  EXPECT_EQ(dataset.examples[0].input_ids,
            (Ids{kBos, id_of_byte('a'), id_of_byte('b'), id_of_byte('c')}));
  EXPECT_EQ(dataset.examples[1].input_ids, (Ids{kEos, kBos, id_of_byte('d'), id_of_byte('e')}));
  EXPECT_EQ(dataset.counts.kept, 2);
  EXPECT_EQ(dataset.counts.tokens_cut, 1);  // the last end token stood alone
  EXPECT_EQ(dataset.num_targets, 6);
}

TEST_F(Pretrain, WithoutPackingADocumentIsARow) {
  settings_.packing = false;
  const Dataset dataset =
      load({folder_.write("a.json", R"([{"text": "ab"}, {"text": "abcdef"}, {"text": " "}])")});
  ASSERT_EQ(dataset.examples.size(), 2U);
  EXPECT_EQ(dataset.examples[0].input_ids.size(), 4U);
  EXPECT_EQ(dataset.examples[1].labels.size(), 4U);
  EXPECT_EQ(dataset.counts.read, 3);
  EXPECT_EQ(dataset.counts.kept, 2);
  EXPECT_EQ(dataset.counts.truncated, 1);
  EXPECT_EQ(dataset.counts.tokens_cut, 4);
  EXPECT_EQ(dataset.counts.dropped_empty, 1);
}

TEST_F(Pretrain, RowsForTheOtherStageAreNamed) {
  const auto refusal = [&](std::string_view content) {
    return error_of(ErrorKind::kData, [&] { (void)load({folder_.write("d.json", content)}); });
  };
  EXPECT_HAS(refusal(R"([{"instruction": "a", "output": "b"}])"),
             "alpaca rows are for supervised training");
  EXPECT_HAS(refusal(R"([{"messages": []}])"), "chats are for supervised training");
  EXPECT_HAS(refusal(R"([{"texts": "a"}])"), "missing \"text\" (found \"texts\")");
  EXPECT_HAS(refusal(R"([{"text": "a"}, {"text": 1}])"),
             "d.json:1 (row 2): \"text\": expected string, got number");
}

TEST_F(Pretrain, TextThatIsNotUtf8IsRefusedWithItsPlace) {
  const auto file = folder_.write("a.txt", "ab\ncd\xff");
  EXPECT_HAS(error_of(ErrorKind::kData, [&] { (void)load({file}); }),
             "byte 0xff at line 2, column 3 is not UTF-8");
  settings_.skip_bad_rows = true;
  EXPECT_HAS(error_of(ErrorKind::kData, [&] { (void)load({file}); }), "no usable row");
}

TEST_F(Pretrain, D15_AnIdBeyondTheEmbeddingIsNamed) {
  settings_.embedding_rows = 100;
  EXPECT_HAS(error_of(ErrorKind::kModel, [&] { (void)load({folder_.write("a.txt", "abc")}); }),
             "token id 100 (\"a\") >= embedding rows 100, row 1 of ");
}

}  // namespace
}  // namespace zeroth::data
