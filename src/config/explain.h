#pragma once

#include <string>

#include "config/resolve.h"
#include "config/schema.h"

namespace zeroth::config {

// The declaration of `word`; an Error of kUsage with the nearest keys where there is none.
[[nodiscard]] const Declaration& key_to_explain(const std::string& word);

// What the key does, where it may stand, what it may be, and what it is in this run.
[[nodiscard]] std::string explanation(const Declaration& key, const Resolution& resolution);
[[nodiscard]] Json explanation_json(const Declaration& key, const Resolution& resolution);

// "an integer of at least 1, in rows": what values the key takes.
[[nodiscard]] std::string values_taken(const Declaration& key);

// "in force", "planned: ...", "without effect: ...", "refused: ...".
[[nodiscard]] std::string status_text(const Declaration& key);

}  // namespace zeroth::config
