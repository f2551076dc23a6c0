#pragma once

#include <array>
#include <cstddef>
#include <optional>
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
                                     "plan",
                                     "explain",
                                     "env",
                                     "inspect",
                                     "init-model",
                                     "tokenize",
                                     "train-tokenizer",
                                     "launch",
                                     "export",
                                     "bench"};
};

template <>
struct Names<FinetuningType> {
  static constexpr std::array kNames{"full", "lora", "freeze"};
};

template <>
struct Names<BiasTraining> {
  static constexpr std::array kNames{"none", "all", "lora_only"};
};

template <>
struct Names<LoraStart> {
  static constexpr std::array kNames{"default", "gaussian"};
};

template <>
struct Names<KernelChoice> {
  static constexpr std::array kNames{"auto", "reference"};
};

template <>
struct Names<PackWeights> {
  static constexpr std::array kNames{"auto", "forward", "off"};
};

template <>
struct Names<StoredType> {
  static constexpr std::array kNames{"auto", "float32", "bfloat16", "float16"};
};

template <>
struct Names<TrainStage> {
  static constexpr std::array kNames{"pt", "sft"};
};

template <>
struct Names<OptimizerKind> {
  static constexpr std::array kNames{"adamw_torch", "adam_l2", "sgd", "lion", "adagrad", "lamb"};
};

template <>
struct Names<NumberType> {
  static constexpr std::array kNames{"fp32", "bf16", "fp16"};
};

// In the order of arithmetic::ScheduleKind; a test compares them with arithmetic::name_of.
template <>
struct Names<ScheduleKind> {
  static constexpr std::array kNames{"linear",
                                     "cosine",
                                     "cosine_with_restarts",
                                     "polynomial",
                                     "constant",
                                     "constant_with_warmup",
                                     "inverse_sqrt",
                                     "cosine_with_min_lr",
                                     "cosine_warmup_with_min_lr",
                                     "warmup_stable_decay",
                                     "WarmupLR",
                                     "WarmupDecayLR",
                                     "WarmupCosineLR",
                                     "OneCycle",
                                     "LRRangeTest"};
};

template <>
struct Names<arithmetic::Slope> {
  static constexpr std::array kNames{"linear", "cosine", "1-sqrt"};
};

template <>
struct Names<arithmetic::WarmupType> {
  static constexpr std::array kNames{"log", "linear"};
};

template <>
struct Names<LaunchKind> {
  static constexpr std::array kNames{"local", "host", "mpi"};
};

template <>
struct Names<OffloadDevice> {
  static constexpr std::array kNames{"none", "cpu", "nvme"};
};

template <>
struct Names<OffloadIo> {
  static constexpr std::array kNames{"auto", "io_uring", "threads"};
};

template <>
struct Names<SaveCadence> {
  static constexpr std::array kNames{"no", "steps", "epoch", "best"};
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
struct IsOptional : std::false_type {};

template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <typename T>
[[nodiscard]] Json to_value(const T& member) {
  if constexpr (IsOptional<T>::value) {
    return member ? Json(*member) : Json();
  } else if constexpr (std::is_enum_v<T>) {
    return Names<T>::kNames.at(static_cast<std::size_t>(member));
  } else {
    return member;
  }
}

template <typename T>
void assign(T& member, const Json& value) {
  if constexpr (IsOptional<T>::value) {
    member.reset();
    if (!value.is_null()) {
      member = value.get<typename T::value_type>();
    }
  } else if constexpr (std::is_enum_v<T>) {
    const auto& names = Names<T>::kNames;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (value.is_string() && value.get_ref<const std::string&>() == names[i]) {
        member = static_cast<T>(i);
        return;
      }
    }
    ZEROTH_CHECK(false, "no enumerator is called {}", value.dump());
  } else {
    member = value.get<T>();
  }
}

template <typename T>
[[nodiscard]] Field field(T RunConfig::*member) {
  return {.get = [=](const RunConfig& config) { return to_value(config.*member); },
          .set = [=](RunConfig& config, const Json& value) { assign(config.*member, value); }};
}

template <typename Settings, typename T>
[[nodiscard]] Field field(Settings RunConfig::*settings, T Settings::*member) {
  return {.get = [=](const RunConfig& config) { return to_value(config.*settings.*member); },
          .set = [=](RunConfig& config,
                     const Json& value) { assign(config.*settings.*member, value); }};
}

// E.g. field(&RunConfig::schedule, &ScheduleSettings::curve, &CurveParameters::power).
template <typename Settings, typename Part, typename T>
[[nodiscard]] Field field(Settings RunConfig::*settings, Part Settings::*part, T Part::*member) {
  return {.get = [=](const RunConfig& config) { return to_value(config.*settings.*part.*member); },
          .set = [=](RunConfig& config,
                     const Json& value) { assign(config.*settings.*part.*member, value); }};
}

}  // namespace zeroth::config
