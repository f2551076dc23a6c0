#include "text/normalizer.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/byte_level.h"
#include "text/fields.h"
#include "text/pattern.h"
#include "text/utf8.h"
#include <fmt/format.h>
#include <utf8proc.h>

namespace zeroth::text {
namespace {

bool is_ascii(std::string_view text) {
  return std::all_of(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

void map_unicode(std::string& text, int options) {
  if (is_ascii(text)) {
    return;  // every normal form of ASCII is itself
  }
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()),
                   &mapped,
                   static_cast<utf8proc_option_t>(options));
  if (length < 0) {
    throw Error(ErrorKind::kInternal,
                fmt::format("Unicode normalisation failed: {}", utf8proc_errmsg(length)));
  }
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  text.assign(reinterpret_cast<const char*>(mapped), static_cast<std::size_t>(length));
}

Normalizer normal_form(int options) {
  return [options](std::string& text) { map_unicode(text, options); };
}

template <typename Map>
void map_code_points(std::string& text, Map map) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    map(out, point.value);
    at += point.length;
  }
  text = std::move(out);
}

void lower_case(std::string& text) {
  constexpr std::uint32_t kCapitalIWithDot =
      0x130;  // the one letter whose lower case is two code points
  map_code_points(text, [](std::string& out, std::uint32_t point) {
    if (point == kCapitalIWithDot) {
      out += "i\xCC\x87";
    } else {
      append_utf8(
          out, static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(point))));
    }
  });
}

void strip_accents(std::string& text) {
  map_code_points(text, [](std::string& out, std::uint32_t point) {
    if (utf8proc_category(static_cast<utf8proc_int32_t>(point)) != UTF8PROC_CATEGORY_MN) {
      append_utf8(out, point);
    }
  });
}

void strip_left(std::string& text) {
  std::size_t begin = 0;
  while (begin < text.size() && is_whitespace(code_point_at(text, begin).value)) {
    begin += code_point_at(text, begin).length;
  }
  text.erase(0, begin);
}

void strip_right(std::string& text) {
  while (!text.empty() && is_whitespace(code_point_before(text, text.size()).value)) {
    text.resize(text.size() - code_point_before(text, text.size()).length);
  }
}

Normalizer parse_strip(Fields& fields) {
  const bool left = fields.flag_or("strip_left", true);
  const bool right = fields.flag_or("strip_right", true);
  return [left, right](std::string& text) {
    if (left) {
      strip_left(text);
    }
    if (right) {
      strip_right(text);
    }
  };
}

Normalizer parse_replace(Fields& fields) {
  return [pattern = Pattern::parse(fields.any("pattern"), fields.where() + ".pattern"),
          content = fields.string("content")](std::string& text) {
    text = pattern.replace_all(text, content);
  };
}

Normalizer parse_prepend(Fields& fields) {
  return [prefix = fields.string("prepend")](std::string& text) {
    if (!text.empty()) {
      text.insert(0, prefix);
    }
  };
}

Normalizer parse_sequence(Fields& fields) {
  std::vector<Normalizer> steps;
  for (const Json& step : fields.array("normalizers")) {
    steps.push_back(
        parse_normalizer(step, fmt::format("{}.normalizers[{}]", fields.where(), steps.size())));
  }
  return [steps = std::move(steps)](std::string& text) {
    for (const Normalizer& step : steps) {
      step(text);
    }
  };
}

Normalizer parse_typed(const std::string& type, Fields& fields) {
  if (type == "NFC") {
    return normal_form(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  }
  if (type == "NFD") {
    return normal_form(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  }
  if (type == "NFKC") {
    return normal_form(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
  }
  if (type == "NFKD") {
    return normal_form(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
  }
  if (type == "Lowercase") {
    return lower_case;
  }
  if (type == "StripAccents") {
    return strip_accents;
  }
  if (type == "ByteLevel") {
    return [](std::string& text) { text = to_byte_characters(text); };
  }
  if (type == "Strip") {
    return parse_strip(fields);
  }
  if (type == "Replace") {
    return parse_replace(fields);
  }
  if (type == "Prepend") {
    return parse_prepend(fields);
  }
  if (type == "Sequence") {
    return parse_sequence(fields);
  }
  fields.not_supported(fmt::format("a normalizer of type \"{}\"", type));
}

}  // namespace

Normalizer parse_normalizer(const Json& json, const std::string& where) {
  Fields fields(json, where);
  Normalizer normalizer = parse_typed(fields.string("type"), fields);
  fields.refuse_others();
  return normalizer;
}

}  // namespace zeroth::text
