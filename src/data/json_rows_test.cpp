#include "data/json_rows.h"

#include "data/test_support.h"
#include <gtest/gtest.h>

namespace zeroth::data {
namespace {

using test::error_of;

JsonRows split(std::string_view text) {
  return split_json_rows(text, "f.json", false);
}

std::string split_error(std::string_view text, bool lines_expected = false) {
  return error_of(ErrorKind::kData, [&] { (void)split_json_rows(text, "f.json", lines_expected); });
}

TEST(JsonRows, AnArrayGivesItsElementsWithTheirPlaces) {
  const auto rows = split("[\n  {\"a\": \"]}\\\"\"},\n\n  {\"b\": [1, {}]}, 7\n]\n");
  EXPECT_EQ(rows.layout, RowLayout::kArray);
  ASSERT_EQ(rows.rows.size(), 3U);
  EXPECT_EQ(rows.rows[0].text, "{\"a\": \"]}\\\"\"}");
  EXPECT_EQ(rows.rows[0].start.line, 2U);
  EXPECT_EQ(rows.rows[1].start.line, 4U);
  EXPECT_EQ(rows.rows[1].start.column, 3U);
  EXPECT_EQ(rows.rows[2].text, "7");
}

TEST(JsonRows, LinesAreToldByTheContent) {
  for (const std::string text :
       {"{\"a\": 1}\n\n{\"a\": 2}\r\n", "\n{\"a\": 1}\n{\"a\": 2}", "[{}]\n[{}]\n"}) {
    const auto rows = split(text);
    EXPECT_EQ(rows.layout, RowLayout::kLines) << text;
    EXPECT_EQ(rows.rows.size(), 2U) << text;
  }
  EXPECT_EQ(split("{\"a\": 1}\n\n{\"a\": 2}").rows[1].start.line, 3U);
  EXPECT_EQ(split("{\"a\": 1}").rows.size(), 1U);
}

TEST(JsonRows, AOneLineArrayIsAnArray) {
  EXPECT_EQ(split("[{\"a\": 1}, {\"a\": 2}]").layout, RowLayout::kArray);
  EXPECT_EQ(split("[{\"a\": 1}, {\"a\": 2}]").rows.size(), 2U);
  EXPECT_TRUE(split("[ ]").rows.empty());
}

TEST(JsonRows, WhatIsNotJsonIsRefusedWithLineAndColumn) {
  EXPECT_HAS(split_error("hello"), "f.json:1:1");
  EXPECT_HAS(split_error("[\n {\"a\": 1},\n]"), "f.json:3:1");
  EXPECT_HAS(split_error("[\n {\"a\": 1}\n {\"b\": 1}\n]"), "f.json:3:2");
  EXPECT_HAS(split_error("[\n {\"a\": 1},\n {\"b\": \"open"), "f.json:3:");
  EXPECT_HAS(split_error("[\n {\"a\": 1}"), "f.json:2:");
  EXPECT_HAS(split_error("[\n {}\n] {}"), "f.json:3:3");
  EXPECT_HAS(split_error("[}"), "f.json:1:2");
}

TEST(JsonRows, OneObjectIsNotRows) {
  EXPECT_HAS(split_error("{\n \"data\": []\n}"), "holds one JSON object, not rows");
  EXPECT_HAS(split_error("\"text\""), "holds one JSON string, not rows");
}

TEST(JsonRows, ABrokenFirstLineOfAJsonlFileStaysARow) {
  EXPECT_EQ(split_json_rows("{\"a\": \n{\"a\": 2}\n", "f.jsonl", true).rows.size(), 2U);
}

TEST(JsonRows, AMistakeInsideARowHasItsPlaceInTheFile) {
  const auto rows = split("[ {\"a\": 1}, {\"b\": }\n, {\n  \"c\": ?}]");
  ASSERT_EQ(rows.rows.size(), 3U);
  EXPECT_HAS(error_of(ErrorKind::kData, [&] { (void)parse_row(rows.rows[1], "f.json"); }),
             "f.json:1:19");
  EXPECT_HAS(error_of(ErrorKind::kData, [&] { (void)parse_row(rows.rows[2], "f.json"); }),
             "f.json:3:8");
}

}  // namespace
}  // namespace zeroth::data
