#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"

// How a file that people read and change is written down.
namespace zeroth::plan {

using Comments = std::map<std::string, std::string>;  // by the path of what it stands above: "a.b"

// Each line of `text` as a comment of its own, `indent` spaces in.
[[nodiscard]] std::string comment_lines(const std::string& text, std::size_t indent = 0);

// `object` as JSON with // comments above its values. Blocks without comments stand on one line.
[[nodiscard]] std::string commented_json(const Json& object, const Comments& comments);

// The value at `path` ("a.b") of `object`; blocks on the way are made.
void put_at(Json& object, const std::string& path, Json value);

// Words of a command as they are typed into a shell, on one line.
[[nodiscard]] std::string shell_line(const std::vector<std::string>& words);

}  // namespace zeroth::plan
