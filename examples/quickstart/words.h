#pragma once

#include <string>

#include "base/random.h"

namespace zeroth::quickstart {

// A word of one to three syllables, real or made up: "kite", "stromab". Small letters, no y and no
// q, so that "vowel" always means a, e, i, o or u.
[[nodiscard]] std::string random_word(RandomStream& random);

// A noun that the stories use: "kite", "river", ...
[[nodiscard]] std::string random_noun(RandomStream& random);

// Letters apart, so that each is one token: "kite" -> "k i t e".
[[nodiscard]] std::string spelled(const std::string& word);

// How many letters stand before the first vowel.
[[nodiscard]] std::size_t leading_consonants(const std::string& word);

}  // namespace zeroth::quickstart
