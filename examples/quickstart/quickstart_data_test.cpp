// The quickstart's promise that a rule is learnt rests on its data: the committed files, and the
// generator.
#include <filesystem>
#include <set>
#include <string>

#include "base/error.h"
#include "base/random.h"
#include "numbers.h"
#include "pretrain.h"
#include "task.h"
#include "verify.h"
#include "words.h"
#include <gtest/gtest.h>

namespace zeroth::quickstart {
namespace {

const std::filesystem::path kData =
    std::filesystem::path(ZEROTH_SOURCE_DIR) / "examples/quickstart/data";

TEST(QuickstartTask, PigLatinMovesTheConsonantsBeforeTheFirstVowel) {
  EXPECT_EQ(pig_latin("kite"), "i t e k a y");
  EXPECT_EQ(pig_latin("street"), "e e t s t r a y");
  EXPECT_EQ(pig_latin("apple"), "a p p l e w a y");
}

TEST(QuickstartTask, ChequeAmountsFollowTheZeroRules) {
  EXPECT_EQ(cheque_amount(4827), "肆仟捌佰贰拾柒元整");
  EXPECT_EQ(cheque_amount(10), "壹拾元整");
  EXPECT_EQ(cheque_amount(4027), "肆仟零贰拾柒元整");
  EXPECT_EQ(cheque_amount(70003), "柒万零叁元整");
  EXPECT_EQ(cheque_amount(20500), "贰万零伍佰元整");
  EXPECT_EQ(cheque_amount(30000), "叁万元整");
}

TEST(QuickstartTask, EverydayNumeralsReadTheSameNumber) {
  EXPECT_EQ(in_chinese(91284, kEveryday), "九万一千二百八十四");
  EXPECT_EQ(in_chinese(307, kEveryday), "三百零七");
}

TEST(QuickstartData, CommittedFilesKeepThePromises) {
  const DataFacts facts = measure(read_task_data(kData));
  EXPECT_EQ(facts.num_shared_inputs, 0U);
  EXPECT_GE(facts.num_distinct_answers, 1000U);
  EXPECT_LT(facts.num_nearest_right * 10, facts.num_heldout);
  EXPECT_GE(facts.num_heldout, 200U);
  EXPECT_EQ(facts.num_heldout_english * 2, facts.num_heldout);
  EXPECT_NO_THROW(require_promises(facts));
}

TEST(QuickstartData, CommittedRowsFollowTheirRule) {
  const TaskData data = read_task_data(kData);
  for (const auto* rows : {&data.train, &data.validation, &data.heldout}) {
    for (const Row& row : *rows) {
      std::string plain;
      for (const char c : row.input) {
        if (c >= '0' && c <= 'z') {
          plain += c;
        }
      }
      const bool is_amount = plain[0] <= '9';
      EXPECT_EQ(row.output, is_amount ? cheque_amount(std::stoull(plain)) : pig_latin(plain))
          << row.input;
    }
  }
}

TEST(QuickstartData, ASharedInputBreaksThePromises) {
  TaskData data = make_task_data(1, {.train = 1200, .validation = 20, .heldout = 20});
  EXPECT_NO_THROW(require_promises(measure(data)));
  data.heldout[3].input = data.train[7].input;
  EXPECT_THROW(require_promises(measure(data)), Error);
}

TEST(QuickstartData, AnswersThatNeighboursShareBreakThePromises) {
  TaskData data = make_task_data(1, {.train = 1200, .validation = 20, .heldout = 20});
  for (Row& row : data.heldout) {
    row.output = "the same";
  }
  for (Row& row : data.train) {
    row.output = "the same";
  }
  EXPECT_THROW(require_promises(measure(data)), Error);
}

TEST(QuickstartData, PretrainingNeverShowsTheTask) {
  RandomStream random(7, 7);
  for (int i = 0; i < 20000; ++i) {
    const std::string document = pretraining_document(random);
    EXPECT_EQ(document.find("Pig Latin"), std::string::npos) << document;
    // An amount of money never comes with a financial numeral.
    const bool has_amount = document.find_first_of("0123456789") != std::string::npos;
    for (const auto numeral : kFinancial.digits) {
      if (has_amount && numeral != kEveryday.digits[0]) {
        EXPECT_EQ(document.find(numeral), std::string::npos) << document;
      }
    }
  }
}

}  // namespace
}  // namespace zeroth::quickstart
