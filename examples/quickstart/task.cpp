#include "task.h"

#include <array>
#include <set>
#include <string_view>

#include "base/random.h"
#include "choose.h"
#include "numbers.h"
#include "words.h"

namespace zeroth::quickstart {
namespace {

constexpr std::array<std::string_view, 5> kPigLatinInstructions{"Say this word in Pig Latin.",
                                                                "Turn the word into Pig Latin.",
                                                                "What is this word in Pig Latin?",
                                                                "Write the word in Pig Latin.",
                                                                "Translate into Pig Latin."};

constexpr std::array<std::string_view, 5> kChequeInstructions{"把这笔金额写成大写。",
                                                              "支票上的金额大写怎么写？",
                                                              "请写出金额的大写。",
                                                              "用大写数字写这笔钱。",
                                                              "填写金额大写。"};

// Amounts of two to five digits, each length as often; a zero now and then, as prices have them.
std::uint64_t random_amount(RandomStream& random) {
  const std::uint64_t num_digits = 2 + random.below(4);
  std::uint64_t amount = 1 + random.below(9);
  for (std::uint64_t i = 1; i < num_digits; ++i) {
    amount = amount * 10 + (one_in(random, 8) ? 0 : random.below(10));
  }
  return amount;
}

Row english_row(RandomStream& random) {
  const std::string word = random_word(random);
  return {.instruction = std::string(choose(random, kPigLatinInstructions)),
          .input = spelled(word),
          .output = pig_latin(word)};
}

Row chinese_row(RandomStream& random) {
  const std::uint64_t amount = random_amount(random);
  return {.instruction = std::string(choose(random, kChequeInstructions)),
          .input = std::to_string(amount) + "元",
          .output = cheque_amount(amount)};
}

// Draws rows until `num_rows` have inputs that no earlier row has.
std::vector<Row> draw(RandomStream& random,
                      std::size_t num_rows,
                      std::set<std::string>& inputs_seen) {
  std::vector<Row> rows;
  while (rows.size() < num_rows) {
    Row row = rows.size() % 2 == 0 ? english_row(random) : chinese_row(random);
    if (inputs_seen.insert(row.input).second) {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

std::string pig_latin(const std::string& word) {
  const std::size_t moved = leading_consonants(word);
  return spelled(word.substr(moved) + (moved == 0 ? "w" : word.substr(0, moved)) + "ay");
}

std::string cheque_amount(std::uint64_t yuan) {
  return in_chinese(yuan, kFinancial) + "元整";
}

TaskData make_task_data(std::uint64_t seed, const TaskSizes& sizes) {
  constexpr std::uint64_t kPurpose = 1;
  RandomStream random(seed, kPurpose);
  std::set<std::string> inputs_seen;
  TaskData data;
  data.heldout = draw(random, sizes.heldout, inputs_seen);
  data.validation = draw(random, sizes.validation, inputs_seen);
  data.train = draw(random, sizes.train, inputs_seen);
  return data;
}

}  // namespace zeroth::quickstart
