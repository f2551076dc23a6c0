#include "words.h"

#include <array>
#include <string_view>

#include "choose.h"

namespace zeroth::quickstart {
namespace {

constexpr std::array<std::string_view, 96> kNouns{
    "apple",  "bird",   "boat",   "book",   "box",    "bread",   "bridge", "cake",  "cat",
    "chair",  "cloud",  "coat",   "cup",    "desk",   "dog",     "door",   "drum",  "duck",
    "egg",    "farm",   "fire",   "fish",   "flag",   "fox",     "frog",   "game",  "garden",
    "gate",   "glass",  "goat",   "hat",    "hen",    "hill",    "horse",  "house", "ice",
    "ink",    "iron",   "island", "jacket", "kite",   "lake",    "lamp",   "leaf",  "lemon",
    "letter", "lion",   "map",    "milk",   "moon",   "mouse",   "nest",   "nose",  "oak",
    "onion",  "orange", "owl",    "paper",  "pen",    "picture", "pin",    "plant", "plate",
    "pond",   "rabbit", "rain",   "ring",   "river",  "road",    "rock",   "rope",  "salt",
    "sand",   "seed",   "ship",   "shoe",   "snow",   "soup",    "spoon",  "star",  "stone",
    "street", "sun",    "table",  "tea",    "tiger",  "train",   "tree",   "truck", "umbrella",
    "uncle",  "wall",   "water",  "wheel",  "window", "wolf"};

constexpr std::array<std::string_view, 40> kOnsets{
    "b",  "c",  "d",  "f",  "g",  "h",  "j",  "k",  "l",  "m",  "n",   "p",  "r",  "s",
    "t",  "v",  "w",  "z",  "bl", "br", "ch", "cl", "cr", "dr", "fl",  "fr", "gl", "gr",
    "pl", "pr", "sh", "sk", "sl", "sn", "sp", "st", "tr", "th", "str", "spr"};
constexpr std::array<std::string_view, 5> kVowels{"a", "e", "i", "o", "u"};
constexpr std::array<std::string_view, 14> kCodas{
    "b", "d", "g", "k", "l", "m", "n", "p", "r", "s", "t", "x", "nd", "st"};

std::string syllable(RandomStream& random, bool first) {
  std::string text;
  if (!first || !one_in(random, 5)) {  // one word in five starts with a vowel
    text += choose(random, kOnsets);
  }
  text += choose(random, kVowels);
  if (one_in(random, 2)) {
    text += choose(random, kCodas);
  }
  return text;
}

}  // namespace

std::string random_noun(RandomStream& random) {
  return std::string(choose(random, kNouns));
}

std::string random_word(RandomStream& random) {
  if (one_in(random, 20)) {
    return random_noun(random);
  }
  const std::uint64_t num_syllables = 1 + random.below(3);
  std::string word;
  for (std::uint64_t i = 0; i < num_syllables; ++i) {
    word += syllable(random, i == 0);
  }
  constexpr std::size_t kShortest = 3;
  return word.size() < kShortest ? word + syllable(random, false) : word;
}

std::string spelled(const std::string& word) {
  std::string text;
  for (const char letter : word) {
    if (!text.empty()) {
      text += ' ';
    }
    text += letter;
  }
  return text;
}

std::size_t leading_consonants(const std::string& word) {
  const std::size_t at = word.find_first_of("aeiou");
  return at == std::string::npos ? word.size() : at;
}

}  // namespace zeroth::quickstart
