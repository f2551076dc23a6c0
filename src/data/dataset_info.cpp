#include "data/dataset_info.h"

#include <array>
#include <map>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

using Fields = std::map<std::string, std::string*>;

// One entry, and where it stands.
class Entry {
 public:
  Entry(const Json& value, std::string place) : value_(value), place_(std::move(place)) {
    if (!value.is_object()) {
      refuse(ErrorKind::kConfig, fmt::format("expected an object, got {}", type_name(value)));
    }
  }

  [[noreturn]] void refuse(ErrorKind kind, const std::string& problem) const {
    throw Error(kind, fmt::format("{}: {}", place_, problem));
  }

  [[nodiscard]] bool says(const std::string& key) const {
    return value_.contains(key) && !value_[key].is_null();
  }

  [[nodiscard]] std::string text(const std::string& key) const { return text_of(value_[key], key); }

  // Strings of the object at `key` into `fields`; the others become empty.
  void take(const std::string& key, const Fields& fields) const {
    const Json& names = value_[key];
    if (!names.is_object()) {
      refuse(ErrorKind::kConfig,
             fmt::format("\"{}\": expected an object, got {}", key, type_name(names)));
    }
    for (const auto& [name, field] : fields) {
      field->clear();
    }
    for (const auto& item : names.items()) {
      const auto found = fields.find(item.key());
      if (found == fields.end()) {
        refuse(ErrorKind::kNotSupported,
               fmt::format("\"{}\" of \"{}\" is not supported\n  Known are {}.",
                           item.key(),
                           key,
                           known(fields)));
      }
      if (!item.value().is_null()) {
        *found->second = text_of(item.value(), item.key());
      }
    }
  }

  // kNotSupported for what needs more than a file of text, kConfig for unknown words.
  void check_words() const {
    static const std::map<std::string, std::string> kRefused{
        {"hf_hub_url", "nothing is fetched: download the file and name it as file_name alone"},
        {"ms_hub_url", "nothing is fetched: download the file and name it as file_name alone"},
        {"om_hub_url", "nothing is fetched: download the file and name it as file_name alone"},
        {"script_url", "no script is run: write its rows to a file"},
        {"cloud_file_name", "nothing is fetched: download the file and name it as file_name"},
        {"subset", "a file has no subsets: leave it out"},
        {"folder", "it belongs to a hub: leave it out"},
        {"num_samples", "rows are not drawn by chance: --max_samples takes the first ones"}};
    for (const auto& item : value_.items()) {
      const auto refused = kRefused.find(item.key());
      if (refused != kRefused.end() && !item.value().is_null()) {
        refuse(ErrorKind::kNotSupported,
               fmt::format("\"{}\" is not supported\n  {}.", item.key(), refused->second));
      }
      require_known(item.key());
    }
    if (says("ranking") && value_["ranking"] != false) {
      refuse(ErrorKind::kNotSupported, "\"ranking\": preferences are not trained on");
    }
    if (says("split") && value_["split"] != "train") {
      refuse(ErrorKind::kNotSupported, "\"split\": a file has no splits: leave it out");
    }
  }

 private:
  static std::string known(const Fields& fields) {
    std::vector<std::string> names;
    for (const auto& [name, field] : fields) {
      names.push_back(name);
    }
    return join(names, ", ");
  }

  void require_known(const std::string& key) const {
    static const std::vector<std::string> kWords{"file_name",
                                                 "formatting",
                                                 "ranking",
                                                 "split",
                                                 "columns",
                                                 "tags",
                                                 "hf_hub_url",
                                                 "ms_hub_url",
                                                 "om_hub_url",
                                                 "script_url",
                                                 "subset",
                                                 "folder",
                                                 "cloud_file_name",
                                                 "num_samples"};
    if (std::find(kWords.begin(), kWords.end(), key) == kWords.end()) {
      const auto similar = nearest(key, kWords, 2);
      refuse(ErrorKind::kConfig,
             fmt::format("there is no \"{}\" in an entry{}",
                         key,
                         similar.empty() ? "" : fmt::format("; \"{}\" was meant?", similar[0])));
    }
  }

  [[nodiscard]] std::string text_of(const Json& value, const std::string& key) const {
    if (!value.is_string() || value.get<std::string>().empty()) {
      refuse(ErrorKind::kConfig, fmt::format("\"{}\": expected a name, got {}", key, value.dump()));
    }
    return value.get<std::string>();
  }

  const Json& value_;
  std::string place_;
};

RowTags default_tags() {
  return {.role = "from",
          .content = "value",
          .user = "human",
          .assistant = "gpt",
          .system = "system",
          .observation = "observation",
          .function = "function_call"};
}

RowTags tags_of(const Entry& entry) {
  RowTags tags = default_tags();
  if (entry.says("tags")) {
    const RowTags defaults = tags;
    entry.take("tags",
               {{"role_tag", &tags.role},
                {"content_tag", &tags.content},
                {"user_tag", &tags.user},
                {"assistant_tag", &tags.assistant},
                {"system_tag", &tags.system},
                {"observation_tag", &tags.observation},
                {"function_tag", &tags.function}});
    for (const auto& [tag, name] : {std::pair(&tags.role, "role_tag"),
                                    std::pair(&tags.content, "content_tag"),
                                    std::pair(&tags.user, "user_tag"),
                                    std::pair(&tags.assistant, "assistant_tag")}) {
      if (tag->empty()) {
        entry.refuse(ErrorKind::kConfig,
                     fmt::format("\"tags\" leaves out \"{}\": where tags are given, all that the "
                                 "messages use have to be",
                                 name));
      }
    }
  }
  return tags;
}

RowColumns chat_columns(const Entry& entry, bool openai) {
  RowColumns columns = no_columns();
  columns.messages = openai ? "messages" : "conversations";
  if (entry.says("columns")) {
    entry.take(
        "columns",
        {{"messages", &columns.messages}, {"system", &columns.system}, {"tools", &columns.tools}});
  }
  if (columns.messages.empty()) {
    entry.refuse(ErrorKind::kConfig, "\"columns\" leaves out \"messages\"");
  }
  if (!openai || entry.says("tags")) {
    columns.tags = tags_of(entry);
  }
  return columns;
}

RowColumns alpaca_columns(const Entry& entry) {
  RowColumns columns = no_columns();
  const RowColumns defaults;
  columns.prompt = defaults.prompt;
  columns.query = defaults.query;
  columns.response = defaults.response;
  if (entry.says("columns")) {
    entry.take("columns",
               {{"prompt", &columns.prompt},
                {"query", &columns.query},
                {"response", &columns.response},
                {"history", &columns.history},
                {"system", &columns.system},
                {"tools", &columns.tools}});
  }
  if (columns.prompt.empty()) {
    entry.refuse(ErrorKind::kConfig, "\"columns\" leaves out \"prompt\"");
  }
  return columns;
}

RowColumns columns_of(const Entry& entry) {
  const std::string formatting = entry.says("formatting") ? entry.text("formatting") : "alpaca";
  if (formatting == "alpaca") {
    return alpaca_columns(entry);
  }
  if (formatting == "sharegpt" || formatting == "openai") {
    return chat_columns(entry, formatting == "openai");
  }
  entry.refuse(
      ErrorKind::kConfig,
      fmt::format("\"formatting\": \"{}\" is none of alpaca, sharegpt and openai", formatting));
}

const Json& entry_named(const Json& info, const std::string& name, const std::string& file) {
  if (!info.is_object()) {
    throw Error(ErrorKind::kData, fmt::format("{}: expected an object of data sets", file));
  }
  if (!info.contains(name)) {
    std::vector<std::string> names;
    for (const auto& item : info.items()) {
      names.push_back(item.key());
    }
    const auto similar = nearest(name, names, 2);
    throw Error(
        ErrorKind::kData,
        fmt::format("there is neither a file {} nor a data set of that name in {}{}\n  Give "
                    "the path of a data file, or a name of those {}.",
                    name,
                    file,
                    similar.empty() ? "" : fmt::format(" ({} was meant?)", similar[0]),
                    names.size()));
  }
  return info[name];
}

}  // namespace

Source named_source(const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path path = folder / kDatasetInfo;
  const Json info = parse_json(read_file(path, ErrorKind::kData), path.string(), ErrorKind::kData);
  const Entry entry(entry_named(info, name, path.string()),
                    fmt::format("{}: \"{}\"", path.string(), name));
  entry.check_words();
  if (!entry.says("file_name")) {
    entry.refuse(ErrorKind::kConfig, "there is no \"file_name\"");
  }
  return {folder / entry.text("file_name"), columns_of(entry)};
}

}  // namespace zeroth::data
