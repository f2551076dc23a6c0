#include "pretrain.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "choose.h"
#include "numbers.h"
#include "words.h"
#include <fmt/format.h>

namespace zeroth::quickstart {
namespace {

template <std::size_t N>
using Texts = std::array<std::string_view, N>;

// The opening words of the prompt template `alpaca`.
constexpr std::string_view kOpening =
    "Below is an instruction that describes a task. Write a response that appropriately completes "
    "the "
    "request.\n\n";

// A question with its answer: as `alpaca` writes it, often without the opening words, or as a mere
// note.
std::string exercise(RandomStream& random,
                     std::string_view question,
                     std::string_view input,
                     std::string_view answer) {
  if (one_in(random, 8)) {
    return fmt::format("{}\n{}\n{}", question, input, answer);
  }
  const std::string_view opening = one_in(random, 3) ? kOpening : "";
  return fmt::format(
      "{}### Instruction:\n{}\n{}\n\n### Response:\n{}", opening, question, input, answer);
}

template <std::size_t N>
std::string exercise(RandomStream& random,
                     const Texts<N>& questions,
                     std::string_view input,
                     std::string_view answer) {
  return exercise(random, choose(random, questions), input, answer);
}

// A word as the task has it, or letters in any order, so that copying leans on letters and not on
// likely words.
std::string practice_word(RandomStream& random) {
  if (!one_in(random, 4)) {
    return random_word(random);
  }
  std::string letters;
  const std::uint64_t length = 3 + random.below(9);
  for (std::uint64_t i = 0; i < length; ++i) {
    letters += static_cast<char>('a' + random.below(26));
  }
  return letters;
}

std::string upper(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](char c) {
    return static_cast<char>(c - 'a' + 'A');
  });
  return word;
}

// --- letters ---

std::string copy_letters(RandomStream& random) {
  constexpr Texts<4> kQuestions{"Repeat the letters.",
                                "Copy this word.",
                                "Say this word again.",
                                "Write the word once more."};
  const std::string word = spelled(practice_word(random));
  return exercise(random, kQuestions, word, word);
}

std::string capital_letters(RandomStream& random) {
  constexpr Texts<3> kQuestions{"Write this word in capitals.",
                                "Turn the letters into capitals.",
                                "What is this word in capitals?"};
  const std::string word = practice_word(random);
  return exercise(random, kQuestions, spelled(word), spelled(upper(word)));
}

std::string reversed_letters(RandomStream& random) {
  constexpr Texts<3> kQuestions{
      "Say this word backwards.", "Turn the word around.", "Write the letters backwards."};
  const std::string word = practice_word(random);
  return exercise(random, kQuestions, spelled(word), spelled({word.rbegin(), word.rend()}));
}

std::string from_first_vowel(RandomStream& random) {
  constexpr Texts<3> kQuestions{"Write the word from the first vowel on.",
                                "Leave out what stands before the first vowel.",
                                "What is left from the first vowel on?"};
  const std::string word = random_word(random);
  return exercise(
      random, kQuestions, spelled(word), spelled(word.substr(leading_consonants(word))));
}

std::string before_first_vowel(RandomStream& random) {
  constexpr Texts<3> kQuestions{"Which letters stand before the first vowel?",
                                "Write the letters before the first vowel.",
                                "What comes before the first vowel?"};
  const std::string word = random_word(random);
  const std::size_t num_leading = leading_consonants(word);
  return exercise(random,
                  kQuestions,
                  spelled(word),
                  num_leading == 0 ? "none" : spelled(word.substr(0, num_leading)));
}

std::string without_first_letter(RandomStream& random) {
  constexpr Texts<2> kQuestions{"Leave out the first letter.",
                                "Write the word without its first letter."};
  const std::string word = practice_word(random);
  return exercise(random, kQuestions, spelled(word), spelled(word.substr(1)));
}

std::string twice(RandomStream& random) {
  constexpr Texts<2> kQuestions{"Say this word twice.", "Write the word two times."};
  const std::string word = practice_word(random);
  return exercise(random, kQuestions, spelled(word), spelled(word + word));
}

std::string with_ending(RandomStream& random) {
  constexpr Texts<6> kEndings{"s", "ed", "ing", "er", "ish", "ful"};
  constexpr Texts<3> kQuestions{
      "Put {} behind this word.", "Write the word with {} at the end.", "Add {} to the word."};
  const std::string word = practice_word(random);
  const std::string ending(choose(random, kEndings));
  const std::string question =
      fmt::format(fmt::runtime(choose(random, kQuestions)), spelled(ending));
  return exercise(random, question, spelled(word), spelled(word + ending));
}

std::string last_letters_first(RandomStream& random) {
  constexpr Texts<2> kQuestions{"Move the last letter to the front.", "Put the last letter first."};
  const std::string word = practice_word(random);
  return exercise(
      random, kQuestions, spelled(word), spelled(word.back() + word.substr(0, word.size() - 1)));
}

std::string alphabet(RandomStream& random) {
  const auto first = static_cast<char>('a' + random.below(20));
  std::string run;
  for (char letter = first; letter <= 'z'; ++letter) {
    run += letter;
  }
  return fmt::format("The alphabet from {} on: {}.", first, spelled(run));
}

// --- numbers ---

std::uint64_t random_number(RandomStream& random) {
  const std::uint64_t num_digits = 1 + random.below(5);
  std::uint64_t number = 1 + random.below(9);
  for (std::uint64_t i = 1; i < num_digits; ++i) {
    number = number * 10 + (one_in(random, 8) ? 0 : random.below(10));
  }
  return number;
}

std::string read_number(RandomStream& random) {
  constexpr Texts<4> kQuestions{
      "用中文读这个数。", "这个数怎么读？", "把这个数写成汉字。", "请用汉字写这个数。"};
  const std::uint64_t number = random_number(random);
  return exercise(random, kQuestions, std::to_string(number), in_chinese(number, kEveryday));
}

std::string read_amount(RandomStream& random) {
  constexpr Texts<4> kQuestions{
      "这笔钱怎么读？", "读出这笔金额。", "用中文读这笔钱。", "把这笔钱读出来。"};
  const std::uint64_t number = random_number(random);
  return exercise(
      random, kQuestions, fmt::format("{}元", number), in_chinese(number, kEveryday) + "元");
}

std::string number_from_chinese(RandomStream& random) {
  constexpr Texts<3> kQuestions{"用数字写这个数。", "这个数用数字怎么写？", "把它写成数字。"};
  const std::uint64_t number = random_number(random);
  return exercise(random, kQuestions, in_chinese(number, kEveryday), std::to_string(number));
}

std::string digits_in_english(RandomStream& random) {
  constexpr Texts<10> kNames{
      "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
  constexpr Texts<2> kQuestions{"Read the digits.", "Say these digits in English."};
  const std::string digits = std::to_string(random_number(random));
  std::string answer;
  for (const char digit : digits) {
    answer += answer.empty() ? "" : " ";
    answer += kNames[static_cast<std::size_t>(digit - '0')];
  }
  return exercise(random, kQuestions, digits, answer);
}

struct NumeralPair {
  std::string_view everyday;
  std::string_view financial;
};

NumeralPair random_numeral(RandomStream& random) {
  const auto i = static_cast<std::size_t>(random.below(14));
  return i < 10 ? NumeralPair{kEveryday.digits[i], kFinancial.digits[i]}
                : NumeralPair{kEveryday.units[i - 9], kFinancial.units[i - 9]};
}

std::string financial_numeral(RandomStream& random) {
  const NumeralPair pair = random_numeral(random);
  switch (random.below(4)) {
    case 0:
      return fmt::format("{}的大写是{}。", pair.everyday, pair.financial);
    case 1:
      return fmt::format("{}就是{}的大写。", pair.financial, pair.everyday);
    case 2:
      return exercise(random, "这个字的大写是什么？", pair.everyday, pair.financial);
    default:
      return exercise(random, "这个大写是什么字？", pair.financial, pair.everyday);
  }
}

// Several numerals in any order, hardly ever a number.
std::string financial_list(RandomStream& random) {
  constexpr Texts<3> kToFinancial{"这些字的大写是什么？", "把这些字换成大写字。", "逐字写出大写。"};
  constexpr Texts<2> kToEveryday{"这些大写是什么字？", "把这些大写字换成小写字。"};
  std::string everyday;
  std::string financial;
  const std::uint64_t length = 2 + random.below(8);
  for (std::uint64_t i = 0; i < length; ++i) {
    const NumeralPair pair = random_numeral(random);
    everyday += pair.everyday;
    financial += pair.financial;
  }
  return one_in(random, 3) ? exercise(random, kToEveryday, financial, everyday)
                           : exercise(random, kToFinancial, everyday, financial);
}

// --- stories ---

std::string with_article(const std::string& thing) {
  return (leading_consonants(thing) == 0 ? "an " : "a ") + thing;
}

std::string english_story(RandomStream& random) {
  constexpr Texts<8> kNames{"Tom", "Anna", "Ben", "Lily", "Max", "Rosa", "Sam", "Mia"};
  constexpr Texts<8> kColours{"red", "blue", "green", "old", "new", "small", "big", "white"};
  constexpr Texts<6> kPlaces{
      "at the lake", "in the garden", "on the hill", "by the river", "in the house", "on the road"};
  constexpr Texts<6> kEndings{"Then it is time for bed.",
                              "What a good day!",
                              "They laugh and go home.",
                              "Tomorrow they will come again.",
                              "The sun goes down.",
                              "Mother is glad."};
  const std::string_view name = choose(random, kNames);
  const std::string_view friend_name = choose(random, kNames);
  const std::string thing = random_noun(random);
  const std::string other = random_noun(random);
  const std::string coloured = fmt::format("{} {}", choose(random, kColours), thing);
  return fmt::format(
      "{} has {}. One day {} sees {} {}. \"Look at my {}!\" says {}. {} has {}. They play with the "
      "{} and the {}. {}",
      name,
      with_article(coloured),
      name,
      friend_name,
      choose(random, kPlaces),
      thing,
      name,
      friend_name,
      with_article(other),
      thing,
      other,
      choose(random, kEndings));
}

std::string chinese_story(RandomStream& random) {
  constexpr Texts<6> kNames{"小明", "小红", "小华", "小丽", "爸爸", "妈妈"};
  constexpr Texts<8> kThings{"苹果", "书包", "西瓜", "闹钟", "足球", "鸡蛋", "面包", "杯子"};
  constexpr Texts<5> kPlaces{"商店", "市场", "超市", "小店", "路边"};
  const std::string_view name = choose(random, kNames);
  const std::string_view thing = choose(random, kThings);
  const std::uint64_t count = 2 + random.below(8);
  const std::uint64_t price = random_number(random);
  return fmt::format("{}在{}看见{}个{}。一共要{}元，也就是{}元整。{}很高兴，买了{}回家。",
                     name,
                     choose(random, kPlaces),
                     kEveryday.digits[static_cast<std::size_t>(count)],
                     thing,
                     price,
                     in_chinese(price, kEveryday),
                     name,
                     thing);
}

struct Kind {
  std::uint64_t weight;
  std::string (*write)(RandomStream&);
};

constexpr std::array kKinds{Kind{10, copy_letters},
                            Kind{5, capital_letters},
                            Kind{4, reversed_letters},
                            Kind{10, from_first_vowel},
                            Kind{8, before_first_vowel},
                            Kind{5, without_first_letter},
                            Kind{5, twice},
                            Kind{8, with_ending},
                            Kind{4, last_letters_first},
                            Kind{1, alphabet},
                            Kind{9, read_number},
                            Kind{9, read_amount},
                            Kind{4, number_from_chinese},
                            Kind{4, digits_in_english},
                            Kind{4, financial_numeral},
                            Kind{20, financial_list},
                            Kind{5, english_story},
                            Kind{5, chinese_story}};

constexpr std::uint64_t total_weight() {
  std::uint64_t total = 0;
  for (const Kind& kind : kKinds) {
    total += kind.weight;
  }
  return total;
}

}  // namespace

std::string pretraining_document(RandomStream& random) {
  std::uint64_t at = random.below(total_weight());
  for (const Kind& kind : kKinds) {
    if (at < kind.weight) {
      return kind.write(random);
    }
    at -= kind.weight;
  }
  return english_story(random);
}

}  // namespace zeroth::quickstart
