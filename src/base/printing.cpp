#include "base/printing.h"

#include <algorithm>

namespace zeroth {

std::string visible(std::string text) {
  std::replace_if(
      text.begin(),
      text.end(),
      [](unsigned char byte) {
        return (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F;
      },
      '?');
  return text;
}

bool is_utf8(const std::string& text) {
  try {
    (void)Json(text).dump();
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace zeroth
