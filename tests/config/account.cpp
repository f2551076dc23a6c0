#include "config/account.h"

#include <set>

namespace zeroth::config {
namespace {

// A block with names of the user's own is one entry, and a leaf for each of its ends.
void list_paths(const std::string& path, const Json& value, std::vector<std::string>& paths) {
  if (!value.is_object() || value.empty()) {
    paths.push_back(path);
    return;
  }
  for (const auto& [key, inner] : value.items()) {
    list_paths(path + "." + key, inner, paths);
  }
}

}  // namespace

Balance balance(const std::vector<std::string>& leaves, const std::vector<Written>& account) {
  std::multiset<std::string> open(leaves.begin(), leaves.end());
  Balance result;
  for (const Written& written : account) {
    std::vector<std::string> paths;
    list_paths(written.path, written.value, paths);
    for (const std::string& path : paths) {
      if (const auto found = open.find(path); found != open.end()) {
        open.erase(found);
      } else {
        result.invented.push_back(path);
      }
    }
  }
  result.lost.assign(open.begin(), open.end());
  return result;
}

std::size_t num_leaves(const std::vector<Written>& account) {
  std::size_t leaves = 0;
  for (const Written& written : account) {
    leaves += written.num_leaves;
  }
  return leaves;
}

}  // namespace zeroth::config
