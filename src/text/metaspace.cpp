#include "text/metaspace.h"

#include <fmt/format.h>

namespace zeroth::text {
namespace {

Metaspace::Scheme parse_scheme(Fields& fields, const std::string& name) {
  if (name == "always") {
    return Metaspace::Scheme::kAlways;
  }
  if (name == "first") {
    return Metaspace::Scheme::kFirst;
  }
  if (name == "never") {
    return Metaspace::Scheme::kNever;
  }
  fields.not_supported(fmt::format("the prepend_scheme \"{}\"", name));
}

}  // namespace

Metaspace Metaspace::parse(Fields& fields) {
  fields.without_effect("str_rep");  // a copy of `replacement` that old files carry
  // Old files say add_prefix_space instead of a scheme; where both stand, the scheme counts.
  const bool add_prefix_space = fields.flag_or("add_prefix_space", true);
  const std::string scheme =
      fields.string_or("prepend_scheme", add_prefix_space ? "always" : "never");
  return {.replacement = fields.string("replacement"),
          .scheme = parse_scheme(fields, scheme),
          .split = fields.flag_or("split", true)};
}

}  // namespace zeroth::text
