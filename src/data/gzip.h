#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace zeroth::data {

[[nodiscard]] bool is_gzip(std::string_view content) noexcept;  // by its first bytes (RFC 1952)

// `content` unpacked, all members one after the other. kData where it is cut off or broken, naming
// `path`.
[[nodiscard]] std::string unpacked(std::string_view content, const std::filesystem::path& path);

}  // namespace zeroth::data
