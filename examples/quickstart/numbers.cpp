#include "numbers.h"

namespace zeroth::quickstart {

const Numerals kEveryday{.digits = {"零", "一", "二", "三", "四", "五", "六", "七", "八", "九"},
                         .units = {"", "十", "百", "千", "万"}};

const Numerals kFinancial{.digits = {"零", "壹", "贰", "叁", "肆", "伍", "陆", "柒", "捌", "玖"},
                          .units = {"", "拾", "佰", "仟", "万"}};

std::string in_chinese(std::uint64_t number, const Numerals& numerals) {
  std::string text;
  bool zero_pending = false;
  std::uint64_t unit_value = 10000;
  for (std::size_t unit = numerals.units.size(); unit-- > 0; unit_value /= 10) {
    const auto digit = static_cast<std::size_t>(number / unit_value % 10);
    if (digit == 0) {
      zero_pending = !text.empty();
      continue;
    }
    if (zero_pending) {
      text += numerals.digits[0];
      zero_pending = false;
    }
    text += numerals.digits[digit];
    text += numerals.units[unit];
  }
  return text;
}

}  // namespace zeroth::quickstart
