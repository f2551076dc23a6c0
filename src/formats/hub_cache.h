#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

// What Hugging Face's tools have downloaded: CACHE/models--OWNER--NAME/{refs,snapshots}
// (huggingface_hub, "Understand caching"). Looked into, never written to.
namespace zeroth::formats {

// The value of an environment variable.
using Variable = std::function<std::optional<std::string>(const std::string&)>;

// Where huggingface_hub keeps it: HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub,
// ~/.cache/huggingface/hub; the first that is set decides.
[[nodiscard]] std::filesystem::path hub_cache_folder(const Variable& variable);

// "owner/name", or "name" as old models have it: no path that stands for itself.
[[nodiscard]] bool is_hub_id(const std::string& name);

// The folder with the files of `id` at `revision` (a branch, tag or commit). Where it is not there,
// an Error of kModel that says where it was looked for and what is there instead.
[[nodiscard]] std::filesystem::path find_in_hub_cache(const std::filesystem::path& cache,
                                                      const std::string& id,
                                                      const std::string& revision);

}  // namespace zeroth::formats
