#include "train/companions.h"

#include "base/file.h"
#include "text/tokenizer.h"

namespace zeroth::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGenerationFile = "generation_config.json";
constexpr const char* kTokenizerFile = "tokenizer.json";

}  // namespace

std::int64_t Companion::bytes() const {
  return static_cast<std::int64_t>(content.empty() ? fs::file_size(source) : content.size());
}

std::vector<Companion> companions_of(const fs::path& model_folder,
                                     const fs::path& tokenizer_folder,
                                     const text::NewTokens& tokens) {
  std::vector<Companion> companions;
  for (const fs::path& file : text::Tokenizer::files_in(tokenizer_folder)) {
    const bool grows = !tokens.empty() && file.filename() == kTokenizerFile;
    companions.push_back(
        {file, grows ? text::tokenizer_json_with(tokenizer_folder, tokens) : std::string()});
  }
  if (fs::exists(model_folder / kGenerationFile)) {
    companions.push_back({model_folder / kGenerationFile, ""});
  }
  return companions;
}

std::vector<fs::path> write_companions(const std::vector<Companion>& companions,
                                       const fs::path& folder) {
  std::vector<fs::path> written;
  for (const Companion& companion : companions) {
    const fs::path target = folder / companion.source.filename();
    if (!companion.content.empty()) {
      write_file_atomically(target, companion.content);
    } else if (!fs::exists(target) || !fs::equivalent(companion.source, target)) {
      write_file_atomically(target, read_file(companion.source, ErrorKind::kModel));
    }
    written.push_back(target);
  }
  return written;
}

}  // namespace zeroth::train
