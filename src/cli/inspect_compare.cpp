#include "cli/inspect_compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "base/error.h"
#include "checkpoint/state_reader.h"
#include "formats/half.h"
#include "formats/mapped_file.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zeroth::cli {
namespace {

using checkpoint::Manifest;
using checkpoint::StateReader;
using formats::TensorView;

constexpr std::int64_t kPieceElements = std::int64_t{1} << 18;

// Fills `values` with the elements from `begin` on.
using ReadPiece = std::function<void(std::int64_t begin, std::span<float> values)>;

void count_difference(float a, float b, OtherValues& result) {
  const double difference = std::abs(static_cast<double>(a) - static_cast<double>(b));
  ++result.differing;
  if (std::isnan(difference)) {
    ++result.without_difference;
  } else {
    result.largest = std::max(result.largest, difference);
  }
}

void count_differences(std::span<const float> a, std::span<const float> b, OtherValues& result) {
  if (std::memcmp(a.data(), b.data(), a.size_bytes()) == 0) {
    return;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) {
      count_difference(a[i], b[i], result);
    }
  }
}

OtherValues compare_numbers(const std::string& name,
                            std::int64_t elements,
                            const ReadPiece& here,
                            const ReadPiece& there) {
  OtherValues result{.name = name, .elements = elements};
  const auto most = static_cast<std::size_t>(std::min(elements, kPieceElements));
  std::vector<float> a(most);
  std::vector<float> b(most);
  for (std::int64_t begin = 0; begin < elements; begin += kPieceElements) {
    const auto count = static_cast<std::size_t>(std::min(kPieceElements, elements - begin));
    here(begin, std::span(a).first(count));
    there(begin, std::span(b).first(count));
    count_differences(std::span(a).first(count), std::span(b).first(count), result);
  }
  return result;
}

// Of ids, masks and the like: which elements have other bytes.
OtherValues compare_bytes(const std::string& name,
                          const TensorView& here,
                          const TensorView& there) {
  const std::size_t width = formats::element_bytes(here.dtype);
  OtherValues result{.name = name,
                     .elements = static_cast<std::int64_t>(here.bytes.size() / width),
                     .measured = false};
  for (std::size_t i = 0; i < here.bytes.size(); i += width) {
    const bool same = std::memcmp(here.bytes.data() + i, there.bytes.data() + i, width) == 0;
    result.differing += same ? 0 : 1;
  }
  return result;
}

// Most tensors of most pairs: nothing needs to be widened and counted.
bool same_bytes(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && std::ranges::equal(a.bytes, b.bytes);
}

OtherValues compare_values(const std::string& name,
                           const InspectedTensor& here,
                           const InspectedTensor& there) {
  const TensorView& a = *here.view;
  const TensorView& b = *there.view;
  if (same_bytes(a, b)) {
    return {.name = name, .elements = here.elements()};
  }
  if (!formats::is_weight_dtype(a.dtype) || !formats::is_weight_dtype(b.dtype)) {
    return compare_bytes(name, a, b);
  }
  return compare_numbers(
      name,
      here.elements(),
      [&](auto begin, auto values) { formats::copy_as_float(a, begin, values); },
      [&](auto begin, auto values) { formats::copy_as_float(b, begin, values); });
}

OtherValues compare_tensors(const std::string& name,
                            const InspectedTensor& here,
                            const InspectedTensor& there) {
  OtherValues result = compare_values(name, here, there);
  formats::drop_pages(here.view->bytes);
  formats::drop_pages(there.view->bytes);
  return result;
}

std::string form_of(const TensorView& view) {
  return fmt::format("{} [{}]", formats::dtype_name(view.dtype), fmt::join(view.shape, ", "));
}

class Comparer {
 public:
  Comparer(const Inspected& here, const Inspected& there) : here_(here), there_(there) {}

  Comparison compare() {
    compare_weights();
    if (here_.manifest && there_.manifest) {
      compare_states(*here_.manifest, *there_.manifest);
    }
    compare_settings();
    return std::move(result_);
  }

 private:
  void take(OtherValues values) {
    if (values.differing == 0) {
      ++result_.equal_tensors;
    } else {
      result_.other_values.push_back(std::move(values));
    }
  }

  void compare_weights() {
    for (const auto& [name, tensor] : here_.tensors) {
      const auto other = there_.tensors.find(name);
      if (other == there_.tensors.end()) {
        result_.only_here.push_back(name);
      } else {
        compare_tensor(name, tensor, other->second);
      }
    }
    for (const auto& [name, tensor] : there_.tensors) {
      if (!here_.tensors.contains(name)) {
        result_.only_there.push_back(name);
      }
    }
  }

  // Two types of numbers may hold the same values.
  void compare_tensor(const std::string& name,
                      const InspectedTensor& here,
                      const InspectedTensor& there) {
    const TensorView& a = *here.view;
    const TensorView& b = *there.view;
    const bool same_form = a.dtype == b.dtype && a.shape == b.shape;
    if (!same_form) {
      result_.other_form.push_back({.name = name, .here = form_of(a), .there = form_of(b)});
    }
    const bool numbers = formats::is_weight_dtype(a.dtype) && formats::is_weight_dtype(b.dtype);
    if (!same_form && (a.shape != b.shape || !numbers)) {
      return;
    }
    OtherValues values = compare_tensors(name, here, there);
    if (same_form || values.differing > 0) {
      take(std::move(values));
    }
  }

  // A master that stands in both results has been compared there.
  static std::vector<std::string> kinds_of(const Manifest& here, const Manifest& there) {
    std::vector<std::string> kinds;
    if (!here.master_in_result || !there.master_in_result) {
      kinds.emplace_back(checkpoint::kMaster);
    }
    for (int moment = 0; moment < std::min(here.num_moments, there.num_moments); ++moment) {
      kinds.push_back(checkpoint::moment_name(moment));
    }
    return kinds;
  }

  void note_only(const Manifest& manifest, std::int64_t moments, std::vector<std::string>& only) {
    for (std::int64_t moment = moments; moment < held_moments(manifest); ++moment) {
      only.push_back("state " + checkpoint::moment_name(static_cast<int>(moment)));
    }
  }

  static std::int64_t held_moments(const Manifest& manifest) {
    return manifest.only_weights() ? 0 : manifest.num_moments;
  }

  void compare_states(const Manifest& here, const Manifest& there) {
    const std::int64_t moments = std::min(held_moments(here), held_moments(there));
    note_only(here, moments, result_.only_here);
    note_only(there, moments, result_.only_there);
    if (here.only_weights() || there.only_weights()) {
      return;
    }
    if (here.units != there.units) {
      result_.faults.emplace_back("the state cannot be compared: other units are trained");
      return;
    }
    StateReader a(here_.path, here);
    StateReader b(there_.path, there);
    for (std::size_t unit = 0; unit < here.units.size(); ++unit) {
      for (const std::string& what : kinds_of(here, there)) {
        compare_state(a, b, here, unit, what);
      }
    }
  }

  void compare_state(StateReader& here,
                     StateReader& there,
                     const Manifest& manifest,
                     std::size_t unit,
                     const std::string& what) {
    const std::string name = manifest.units[unit].name + "/" + what;
    const auto piece_of = [unit, &what](StateReader& reader) {
      return [&reader, unit, &what](std::int64_t begin, std::span<float> values) {
        const shard::Range range{.begin = begin,
                                 .end = begin + static_cast<std::int64_t>(values.size())};
        reader.read(static_cast<std::int64_t>(unit), what, range, values);
      };
    };
    try {
      const std::int64_t numel = manifest.units[unit].numel();
      if (numel > 0) {
        take(compare_numbers(name, numel, piece_of(here), piece_of(there)));
      }
    } catch (const Error& error) {
      result_.faults.push_back(fmt::format("{} cannot be compared: {}", name, error.what()));
    }
  }

  // A run's settings with a run's, and what an adapter or a model says of itself with the same. A
  // file alone says nothing.
  void compare_settings() {
    const bool alike = here_.kind == there_.kind;
    const Json& a = alike ? here_.settings : here_.config;
    const Json& b = alike ? there_.settings : there_.config;
    if (a.empty() || b.empty()) {
      return;
    }
    std::set<std::string> keys;
    for (const Json* settings : {&a, &b}) {
      for (const auto& [key, value] : settings->items()) {
        keys.insert(key);
      }
    }
    for (const std::string& key : keys) {
      const Json here = a.value(key, Json());
      const Json there = b.value(key, Json());
      if (here != there) {
        result_.settings.push_back({.key = key, .here = here, .there = there});
      }
    }
  }

  const Inspected& here_;
  const Inspected& there_;
  Comparison result_;
};

}  // namespace

bool Comparison::equal_values() const {
  return only_here.empty() && only_there.empty() && other_form.empty() && other_values.empty() &&
         faults.empty();
}

Comparison compare(const Inspected& here, const Inspected& there) {
  return Comparer(here, there).compare();
}

}  // namespace zeroth::cli
