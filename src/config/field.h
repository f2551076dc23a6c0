#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "config/schema.h"

// Binds a declaration to its place in RunConfig by pointers to members, and enumerators to their
// names.
namespace zeroth::config {

// The names of an enum's values, in the order of the enumerators.
template <typename Enum>
struct Names;

template <>
struct Names<Command> {
  static constexpr std::array kNames{"train",
                                     "eval",
                                     "predict",
                                     "check",
                                     "explain",
                                     "env",
                                     "init-model",
                                     "tokenize",
                                     "train-tokenizer"};
};

template <>
struct Names<FinetuningType> {
  static constexpr std::array kNames{"full", "lora"};
};

template <>
struct Names<TrainStage> {
  static constexpr std::array kNames{"pt", "sft"};
};

template <>
struct Names<OptimizerKind> {
  static constexpr std::array kNames{"adamw_torch", "sgd"};
};

template <>
struct Names<ScheduleKind> {
  static constexpr std::array kNames{"linear", "cosine", "constant", "constant_with_warmup"};
};

template <>
struct Names<LaunchKind> {
  static constexpr std::array kNames{"local", "host", "mpi"};
};

template <>
struct Names<Cadence> {
  static constexpr std::array kNames{"no", "steps", "epoch"};
};

template <typename Enum>
[[nodiscard]] std::vector<std::string> choices_of() {
  return {Names<Enum>::kNames.begin(), Names<Enum>::kNames.end()};
}

template <typename T>
[[nodiscard]] Json to_value(const T& member) {
  if constexpr (std::is_enum_v<T>) {
    return Names<T>::kNames.at(static_cast<std::size_t>(member));
  } else {
    return member;
  }
}

template <typename T>
void assign(T& member, const Json& value) {
  if constexpr (std::is_enum_v<T>) {
    const auto names = choices_of<T>();
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (value == names[i]) {
        member = static_cast<T>(i);
        return;
      }
    }
    ZEROTH_CHECK(false, "no enumerator is called {}", value.dump());
  } else {
    member = value.get<T>();
  }
}

template <typename Settings, typename T>
[[nodiscard]] Field field(Settings RunConfig::*settings, T Settings::*member) {
  return {.get = [=](const RunConfig& config) { return to_value(config.*settings.*member); },
          .set = [=](RunConfig& config,
                     const Json& value) { assign(config.*settings.*member, value); }};
}

template <typename T>
[[nodiscard]] Field field(T RunConfig::*member) {
  return {.get = [=](const RunConfig& config) { return to_value(config.*member); },
          .set = [=](RunConfig& config, const Json& value) { assign(config.*member, value); }};
}

}  // namespace zeroth::config
