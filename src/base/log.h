#pragma once

#include <string>

// The one sink for words to people. Everything goes to standard error, so that standard output
// stays free for what a command produces. Each call writes whole lines with one write(2), so that
// lines of several processes do not mix.
namespace zeroth::log {

// One process of a run speaks for all: the others keep info and warnings to themselves.
void set_quiet(bool quiet) noexcept;

void info(const std::string& message);
void warn(const std::string& message);  // prefixed with "warning: "; only when the user should act
void error(const std::string& message);
void always(const std::string& message);  // as it is, quiet or not: why a process ends

}  // namespace zeroth::log
