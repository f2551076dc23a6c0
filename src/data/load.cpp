#include "data/load.h"

#include "base/check.h"
#include "base/error.h"
#include "data/pretrain.h"
#include "data/supervised.h"
#include <fmt/format.h>

namespace zeroth::data {

Dataset load_examples(const Sources& sources,
                      const text::Tokenizer& tokenizer,
                      const LoadSettings& settings) {
  ZEROTH_CHECK(!sources.empty(), "no data files to load");
  ZEROTH_CHECK(settings.embedding_rows > 0, "embedding_rows was not given");
  if (settings.cutoff_len < 2) {
    throw Error(ErrorKind::kConfig,
                fmt::format("cutoff_len {}: a row needs a token and a next token to predict\n  Set "
                            "--cutoff_len to 2 "
                            "or more.",
                            settings.cutoff_len));
  }
  return settings.stage == Stage::kPretrain ? load_pretrain(sources, tokenizer, settings)
                                            : load_supervised(sources, tokenizer, settings);
}

}  // namespace zeroth::data
