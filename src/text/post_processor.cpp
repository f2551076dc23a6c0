#include "text/post_processor.h"

#include "base/error.h"
#include "text/fields.h"
#include <fmt/format.h>

namespace zeroth::text {
namespace {

void append_special_token(const std::string& name,
                          const Json& special_tokens,
                          const std::string& where,
                          std::vector<TokenId>& to) {
  const auto found = special_tokens.find(name);
  if (found == special_tokens.end()) {
    throw Error(ErrorKind::kFormat,
                fmt::format("{} uses \"{}\", which its special_tokens lack", where, name));
  }
  Fields fields(*found, fmt::format("{}.special_tokens[\"{}\"]", where, name));
  for (const Json& id : fields.array("ids")) {
    if (!id.is_number_integer()) {
      fields.wrong_type("ids", "an array of whole numbers", id);
    }
    to.push_back(id.get<TokenId>());
  }
}

Surroundings parse_template(Fields& fields) {
  Surroundings around;
  bool seen_sequence = false;
  fields.without_effect("pair");  // two sequences are never encoded as a pair here
  const Json* special_tokens = fields.find("special_tokens");
  for (const Json& entry : fields.array("single")) {
    Fields item(entry, fields.where() + ".single");
    if (const Json* special = item.find("SpecialToken")) {
      append_special_token(Fields(*special, item.where()).string("id"),
                           special_tokens == nullptr ? Json::object() : *special_tokens,
                           fields.where(),
                           seen_sequence ? around.after : around.before);
    } else if (!seen_sequence && Fields(item.any("Sequence"), item.where()).string("id") == "A") {
      seen_sequence = true;
    } else {
      item.not_supported("anything but the sequence A, once");
    }
  }
  if (!seen_sequence) {
    throw Error(ErrorKind::kFormat, fmt::format("{}.single lacks the sequence A", fields.where()));
  }
  return around;
}

// Each processor surrounds what those before it made.
Surroundings parse_sequence(Fields& fields) {
  Surroundings around;
  std::size_t index = 0;
  for (const Json& step : fields.array("processors")) {
    const Surroundings outer =
        parse_post_processor(step, fmt::format("{}.processors[{}]", fields.where(), index++));
    around.before.insert(around.before.begin(), outer.before.begin(), outer.before.end());
    around.after.insert(around.after.end(), outer.after.begin(), outer.after.end());
  }
  return around;
}

Surroundings parse_typed(const std::string& type, Fields& fields) {
  if (type == "TemplateProcessing") {
    return parse_template(fields);
  }
  if (type == "Sequence") {
    return parse_sequence(fields);
  }
  if (type == "ByteLevel") {
    for (const char* key : {"add_prefix_space", "trim_offsets", "use_regex"}) {
      fields.without_effect(key);  // as a post-processor it moves offsets alone, which are not kept
    }
    return {};
  }
  fields.not_supported(fmt::format("a post-processor of type \"{}\"", type));
}

}  // namespace

Surroundings parse_post_processor(const Json& json, const std::string& where) {
  Fields fields(json, where);
  Surroundings around = parse_typed(fields.string("type"), fields);
  fields.refuse_others();
  return around;
}

}  // namespace zeroth::text
