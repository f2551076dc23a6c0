#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include <fmt/format.h>

// ZEROTH_CHECK(condition, format, ...): a programmer error when it fails; on in every build.
// ZEROTH_CHECK_EQ(a, b, format, ...) prints both operands as well.
// ZEROTH_DCHECK is for hot loops alone and vanishes in release builds.
namespace zeroth::internal {

[[noreturn]] void check_failed(const char* file,
                               int line,
                               std::string_view condition,
                               const std::string& message);

}  // namespace zeroth::internal

#define ZEROTH_CHECK(condition, ...)                                                              \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      ::zeroth::internal::check_failed(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
    }                                                                                             \
  } while (false)

#define ZEROTH_CHECK_EQ(a, b, ...)                                        \
  do {                                                                    \
    const auto& zeroth_a = (a);                                           \
    const auto& zeroth_b = (b);                                           \
    if (!(zeroth_a == zeroth_b)) {                                        \
      ::zeroth::internal::check_failed(                                   \
          __FILE__,                                                       \
          __LINE__,                                                       \
          fmt::format("{} == {} ({} != {})", #a, #b, zeroth_a, zeroth_b), \
          fmt::format(__VA_ARGS__));                                      \
    }                                                                     \
  } while (false)

#ifdef NDEBUG
#define ZEROTH_DCHECK(condition, ...) static_cast<void>(0)
#else
#define ZEROTH_DCHECK(condition, ...) ZEROTH_CHECK(condition, __VA_ARGS__)
#endif
