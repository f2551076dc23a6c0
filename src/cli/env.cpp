#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "base/printing.h"
#include "base/text.h"
#include "cli/commands.h"
#include "config/resolve.h"
#include <fmt/format.h>
#include <unistd.h>

namespace zeroth::cli {
namespace {

std::string value_in(const char* file, const std::string& name) {
  std::ifstream stream(file);
  std::string line;
  while (std::getline(stream, line)) {
    const auto colon = line.find(':');
    if (colon != std::string::npos && trim(std::string_view(line).substr(0, colon)) == name) {
      return std::string(trim(std::string_view(line).substr(colon + 1)));
    }
  }
  return "";
}

// The features that choose a kernel, of those that the processor and the kernel offer.
std::vector<std::string> processor_features() {
  constexpr std::array kOfInterest{
      "sse4_2", "avx2", "fma", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16"};
  std::istringstream words(value_in("/proc/cpuinfo", "flags"));
  std::set<std::string> flags;
  for (std::string word; words >> word;) {
    flags.insert(word);
  }
  std::vector<std::string> found;
  for (const char* feature : kOfInterest) {
    if (flags.contains(feature)) {
      found.emplace_back(feature);
    }
  }
  return found;
}

bool has(const std::vector<std::string>& features, const char* name) {
  return std::find(features.begin(), features.end(), name) != features.end();
}

// What oneDNN picks for bf16 products on such a processor.
std::string bf16_products(const std::vector<std::string>& features) {
  if (has(features, "amx_bf16")) {
    return "oneDNN, AMX tiles";
  }
  if (has(features, "avx512_bf16")) {
    return "oneDNN, AVX-512 bf16";
  }
  return has(features, "avx512f") ? "oneDNN, AVX-512 in fp32 steps"
                                  : "fp32 products of widened operands";
}

std::string fp32_products(const std::vector<std::string>& features) {
  return has(features, "avx512f") ? "oneDNN, AVX-512"
         : has(features, "avx2")  ? "oneDNN, AVX2"
                                  : "oneDNN, SSE4";
}

// What Highway picks (kernels/simd).
std::string vector_code(const std::vector<std::string>& features) {
  return has(features, "avx512f") ? "AVX-512" : has(features, "avx2") ? "AVX2" : "SSE4 or plain";
}

std::string found_in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
    const std::string file = folder + "/" + program;
    if (!folder.empty() && ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return "";
}

Json launchers() {
  Json found = Json::object();
  for (const char* program : {"mpirun", "srun", "torchrun", "accelerate", "deepspeed"}) {
    const std::string file = found_in_path(program);
    found[program] = file.empty() ? Json() : Json(file);
  }
  return found;
}

Json environment_report() {
  const std::vector<std::string> features = processor_features();
  return {{"zeroth", ZEROTH_VERSION},
          {"libtorch", ZEROTH_TORCH_VERSION},
          {"compiler", __VERSION__},
          {"processor", value_in("/proc/cpuinfo", "model name")},
          {"cores", std::thread::hardware_concurrency()},
          {"memory", value_in("/proc/meminfo", "MemTotal")},
          {"features", features},
          {"kernels",
           {{"bf16 products", bf16_products(features)},
            {"fp32 products", fp32_products(features)},
            {"attention, norms, activations, cross-entropy", vector_code(features)}}},
          {"launchers", launchers()},
          {"variables", config::process_environment()}};
}

std::string shown(const Json& value) {
  if (value.is_null()) {
    return "not found";
  }
  if (value.is_array()) {
    return join(value.get<std::vector<std::string>>(), ", ");
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void print_text(const Json& report) {
  for (const auto& [name, value] : report.items()) {
    if (!value.is_object()) {
      std::fputs(visible(fmt::format("{:<12} {}\n", name, shown(value))).c_str(), stdout);
      continue;
    }
    std::fputs((name + "\n").c_str(), stdout);
    for (const auto& [inner, inner_value] : value.items()) {
      std::fputs(visible(fmt::format("  {} = {}\n", inner, shown(inner_value))).c_str(), stdout);
    }
  }
}

}  // namespace

int run_env(Arguments arguments) {
  const config::RunConfig config = config::resolve(config::Command::kEnv, arguments, {});
  const Json report = environment_report();
  if (config.json_output) {
    std::fputs((json_text(report) + "\n").c_str(), stdout);
  } else {
    print_text(report);
  }
  return 0;
}

}  // namespace zeroth::cli
