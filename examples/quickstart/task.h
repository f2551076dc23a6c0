#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace zeroth::quickstart {

// What the quickstart teaches, in alpaca's fields.
//
// English: Pig Latin on a spelled word. The consonants before the first vowel move to the end and
// "a y"
//   follows; a word that starts with a vowel gets "w a y":  k i t e -> i t e k a y,  a p p l e -> a
//   p p l e w a y.
// Chinese: an amount in yuan as cheques have it, in the financial numerals:  4027元 ->
// 肆仟零贰拾柒元整.
//
// The base model knows the pieces (copying letters, which stand before the first vowel, reading
// numbers in everyday numerals, which financial numeral means which digit) but has never seen
// either rule.
struct Row {
  std::string instruction;
  std::string input;
  std::string output;
};

struct TaskData {
  std::vector<Row> train;
  std::vector<Row> validation;
  std::vector<Row> heldout;
};

struct TaskSizes {
  std::size_t train = 0;
  std::size_t validation = 0;
  std::size_t heldout = 0;
};

[[nodiscard]] std::string pig_latin(const std::string& word);
[[nodiscard]] std::string cheque_amount(std::uint64_t yuan);

// Half the rows English, half Chinese, no input twice anywhere. Depends on the arguments alone.
[[nodiscard]] TaskData make_task_data(std::uint64_t seed, const TaskSizes& sizes);

}  // namespace zeroth::quickstart
