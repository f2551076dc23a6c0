// Prints docs/configuration.md.
#include <cstdio>

#include "config/reference_page.h"

int main() {
  const std::string page = zeroth::config::reference_page();
  return std::fwrite(page.data(), 1, page.size(), stdout) == page.size() ? 0 : 1;
}
