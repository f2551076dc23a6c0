#include "base/printing.h"

#include <gtest/gtest.h>

namespace zeroth {
namespace {

TEST(Printing, ControlCharactersDoNotReachATerminal) {
  EXPECT_EQ(visible("a\x1b[31mb\nc\td\x7f"), "a?[31mb\nc\td?");
}

TEST(Printing, BytesThatAreNoTextBecomeTheReplacementCharacter) {
  EXPECT_FALSE(is_utf8("\xff\xfe"));
  EXPECT_TRUE(is_utf8("\u6570"));
  EXPECT_EQ(json_text({{"a", "\xff"}}), "{\"a\":\"\xEF\xBF\xBD\"}");
}

}  // namespace
}  // namespace zeroth
