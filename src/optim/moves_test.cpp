#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "optim/norm.h"
#include "optim/test_shard.h"
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <omp.h>

// Vector code against the formulas one element at a time, to the bit and on every kind of processor
// that this one can be.
namespace zeroth::optim {
namespace {

using kernels::simd::Storage;

constexpr UpdateStep kStep{.update = 3, .learning_rate = 0.01, .gradient_scale = 0.37};

// While it lives, vector code runs as it does on processors of that kind.
class KindScope {
 public:
  explicit KindScope(std::int64_t kind) {
    hwy::SetSupportedTargetsForTest(kind);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  KindScope(const KindScope&) = delete;
  KindScope& operator=(const KindScope&) = delete;

  ~KindScope() {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

std::vector<std::int64_t> kinds() {
  std::vector<std::int64_t> kinds;
  for (const std::int64_t kind : {HWY_SSE4, HWY_AVX2, HWY_AVX3, HWY_AVX3_DL}) {
    if ((hwy::SupportedTargets() & kind) != 0) {
      kinds.push_back(kind);
    }
  }
  return kinds;
}

// Uneven numbers of many sizes, zeros among them; moments as adagrad's are where they are squares.
TestShard uneven_shard(std::size_t numel, bool first_is_squares = false) {
  TestShard shard(numel);
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < numel; ++i) {
    shard.master[i] = normal(random);
    shard.gradients[i] =
        i % 17 == 0 ? 0.0F : std::ldexp(normal(random), static_cast<int>(i % 40) - 30);
    shard.first[i] = i % 13 == 0 ? 0.0F : normal(random);
    if (first_is_squares) {
      shard.first[i] = std::abs(shard.first[i]);
    }
    shard.second[i] = std::abs(normal(random));
  }
  return shard;
}

// One element by a rule's formula.
struct Element {
  float weight, gradient, first, second;
};

struct Rule {
  std::string name;
  std::unique_ptr<Optimizer> optimizer;
  void (*move)(Element& element);
  bool first_is_squares = false;
};

constexpr float kScale = 0.37F;
constexpr float kDecay = 0.1F;
constexpr float kRate = 0.01F;

float decayed_gradient(const Element& e) {
  return e.gradient * kScale + kDecay * e.weight;
}

template <bool kDecoupled>
void adam(Element& e) {
  const auto step_size = static_cast<float>(0.01 / (1.0 - std::pow(0.9, 3.0)));
  const auto correction = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(0.999, 3.0)));
  const float gradient = kDecoupled ? e.gradient * kScale : decayed_gradient(e);
  const float weight = kDecoupled ? e.weight * static_cast<float>(1.0 - 0.01 * 0.1) : e.weight;
  e.first += static_cast<float>(1.0 - 0.9) * (gradient - e.first);
  e.second = 0.999F * e.second + static_cast<float>(1.0 - 0.999) * gradient * gradient;
  e.weight = weight - step_size * e.first / (std::sqrt(e.second) * correction + 1e-8F);
}

void sgd(Element& e) {
  e.weight -= kRate * decayed_gradient(e);
}

template <bool kNesterov>
void sgd_with_momentum(Element& e) {
  const float gradient = decayed_gradient(e);
  e.first = 0.9F * e.first + 1.0F * gradient;
  e.weight -= kRate * (kNesterov ? gradient + 0.9F * e.first : e.first);
}

void lion(Element& e) {
  const float gradient = e.gradient * kScale;
  const float blend = 0.9F * e.first + static_cast<float>(1.0 - 0.9) * gradient;
  const float sign = blend > 0 ? 1.0F : (blend < 0 ? -1.0F : 0.0F);
  e.weight = e.weight * static_cast<float>(1.0 - 0.01 * 0.1) - kRate * sign;
  e.first = 0.99F * e.first + static_cast<float>(1.0 - 0.99) * gradient;
}

void adagrad(Element& e) {
  const float gradient = decayed_gradient(e);
  e.first += gradient * gradient;
  e.weight -= kRate * gradient / (std::sqrt(e.first) + 1e-10F);
}

void lamb(Element& e) {
  const auto correction1 = static_cast<float>(1.0 / (1.0 - std::pow(0.9, 3.0)));
  const auto correction2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(0.999, 3.0)));
  const float gradient = e.gradient * kScale;
  e.first = 0.9F * e.first + static_cast<float>(1.0 - 0.9) * gradient;
  e.second = 0.999F * e.second + static_cast<float>(1.0 - 0.999) * gradient * gradient;
  const float root = std::sqrt(e.second) * correction2 + 1e-8F;
  e.weight -= kRate * (e.first * correction1 / root + kDecay * e.weight);
}

std::vector<Rule> rules() {
  std::vector<Rule> all;
  const auto add = [&](std::string name, std::unique_ptr<Optimizer> optimizer, auto move) {
    all.push_back({std::move(name), std::move(optimizer), move});
  };
  add("adamw", make_adamw({.weight_decay = 0.1}), adam<true>);
  add("adam", make_adam({.weight_decay = 0.1}), adam<false>);
  add("sgd", make_sgd({.weight_decay = 0.1}), sgd);
  add("sgd with momentum",
      make_sgd({.momentum = 0.9, .weight_decay = 0.1}),
      sgd_with_momentum<false>);
  add("sgd, nesterov",
      make_sgd({.momentum = 0.9, .nesterov = true, .weight_decay = 0.1}),
      sgd_with_momentum<true>);
  add("lion", make_lion({.weight_decay = 0.1}), lion);
  add("adagrad", make_adagrad({.weight_decay = 0.1}), adagrad);
  all.back().first_is_squares = true;
  add("lamb", make_lamb({.weight_decay = 0.1}), lamb);
  return all;
}

// With a ratio of 1 for an optimizer that uses norms.
void update(const Optimizer& optimizer, TestShard& shard, RoundedWeights rounded = {}) {
  ShardView view = shard.view();
  if (optimizer.uses_norms()) {
    std::vector<Optimizer::Norms> norms(shard.segments.size());
    optimizer.measure(view, kStep, norms);
    shard.ratios.assign(shard.segments.size(), 1.0);
    view.ratios = shard.ratios;
  }
  view.rounded = rounded;
  optimizer.update(view, kStep);
}

void move_by_formula(const Rule& rule, TestShard& shard) {
  for (std::size_t i = 0; i < shard.master.size(); ++i) {
    Element e{shard.master[i], shard.gradients[i], shard.first[i], shard.second[i]};
    rule.move(e);
    shard.master[i] = e.weight;
    shard.first[i] = e.first;
    shard.second[i] = e.second;
  }
}

TEST(Moves, AreTheFormulasToTheBitOnEveryKindOfProcessor) {
  for (const Rule& rule : rules()) {
    for (const std::size_t numel : {1U, 3U, 16U, 63U, 4099U, 70'001U}) {
      const TestShard start = uneven_shard(numel, rule.first_is_squares);
      TestShard expected = start;
      move_by_formula(rule, expected);
      for (const std::int64_t kind : kinds()) {
        const KindScope scope(kind);
        TestShard shard = start;
        update(*rule.optimizer, shard);
        EXPECT_EQ(shard.master, expected.master) << rule.name << ", " << hwy::TargetName(kind);
        EXPECT_EQ(shard.first, expected.first) << rule.name << ", " << hwy::TargetName(kind);
        EXPECT_EQ(shard.second, expected.second) << rule.name << ", " << hwy::TargetName(kind);
      }
    }
  }
}

TEST(Moves, DoNotDependOnTheNumberOfThreads) {
  const int threads = omp_get_max_threads();
  for (const Rule& rule : rules()) {
    std::vector<std::vector<float>> weights;
    for (const int number : {1, 2, 5}) {
      omp_set_num_threads(number);
      TestShard shard = uneven_shard(100'003, rule.first_is_squares);
      update(*rule.optimizer, shard);
      weights.push_back(shard.master);
    }
    omp_set_num_threads(threads);
    EXPECT_EQ(weights[0], weights[1]) << rule.name;
    EXPECT_EQ(weights[0], weights[2]) << rule.name;
  }
}

// ---- The rounded weights

std::uint16_t bf16_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

// What `bits` hold of an fp16 number; no infinities or NaN.
float from_fp16(std::uint16_t bits) {
  const float sign = (bits & 0x8000U) != 0 ? -1.0F : 1.0F;
  const int exponent = (bits >> 10U) & 0x1FU;
  const int fraction = bits & 0x3FFU;
  return sign * (exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                               : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25));
}

// Nearest to the value of all fp16 numbers, and even where two are as near.
bool is_rounded_to_fp16(std::uint16_t bits, float value) {
  const float error = std::abs(from_fp16(bits) - value);
  const auto is_nearer = [&](int step) {
    const auto neighbour = static_cast<std::uint16_t>(bits + step);
    if ((bits & 0x7FFFU) == 0 && step < 0) {
      return false;
    }
    const float other = std::abs(from_fp16(neighbour) - value);
    return other < error || (other == error && bits % 2 != 0);
  };
  return !is_nearer(-1) && !is_nearer(1);
}

constexpr std::uint16_t kUntouched = 0xABCD;

// All of a shard but a stretch between its two segments, in an array that begins at an odd place.
struct RoundedCase {
  TestShard shard;
  std::vector<std::uint16_t> bits;

  RoundedCase(std::size_t numel, bool first_is_squares)
      : shard(uneven_shard(numel, first_is_squares)), bits(numel + 3, kUntouched) {
    const auto end = static_cast<std::int64_t>(numel);
    shard.segments = {{.range = {0, end / 3}, .weight_decay = 0.1},
                      {.range = {end / 3 + 1, end}, .weight_decay = 0.1}};
  }

  [[nodiscard]] RoundedWeights rounded(Storage type) {
    return {.type = type, .bits = std::span(bits).subspan(3)};
  }
};

template <typename IsRounded>
void expect_rounded(const RoundedCase& given,
                    const std::string& name,
                    const IsRounded& is_rounded) {
  const std::size_t numel = given.shard.master.size();
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < numel; ++i) {
    const std::uint16_t bits = given.bits[i + 3];
    wrong += i == numel / 3 ? bits != kUntouched : !is_rounded(bits, given.shard.master[i]);
  }
  EXPECT_EQ(wrong, 0U) << name << " of " << numel;
  EXPECT_EQ(given.bits[2], kUntouched) << name;
}

TEST(Rounded, EveryOptimizerStoresTheNewWeightsBesideTheMaster) {
  for (const Rule& rule : rules()) {
    TestShard plain = RoundedCase(4099, rule.first_is_squares).shard;
    update(*rule.optimizer, plain);
    for (const std::int64_t kind : kinds()) {
      const KindScope scope(kind);
      RoundedCase bf16(4099, rule.first_is_squares);
      update(*rule.optimizer, bf16.shard, bf16.rounded(Storage::kBf16));
      EXPECT_EQ(bf16.shard.master, plain.master) << rule.name;
      expect_rounded(
          bf16, rule.name, [](auto bits, float value) { return bits == bf16_of(value); });
      RoundedCase fp16(4099, rule.first_is_squares);
      update(*rule.optimizer, fp16.shard, fp16.rounded(Storage::kFp16));
      expect_rounded(fp16, rule.name, is_rounded_to_fp16);
    }
  }
}

// So large that they are stored past the caches, from a line's middle on.
TEST(Rounded, OfALargeShard) {
  RoundedCase given((1 << 22) + 5, false);
  update(*make_adamw({}), given.shard, given.rounded(Storage::kBf16));
  expect_rounded(given, "adamw", [](auto bits, float value) { return bits == bf16_of(value); });
}

// ---- The norm

// By its definition: chunks of 4096, eight interleaved sums each.
double sum_by_definition(std::span<const float> values) {
  double total = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += 4096) {
    double sums[8] = {};
    for (std::size_t i = begin; i < std::min(begin + 4096, values.size()); ++i) {
      sums[(i - begin) % 8] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    }
    double sum = 0;
    for (const double part : sums) {
      sum += part;
    }
    total += sum;
  }
  return total;
}

TEST(Norm, IsSummedInOneOrderOnEveryKindOfProcessor) {
  for (const std::size_t numel : {0U, 1U, 7U, 8U, 100U, 4096U, 4097U, 32'768U, 100'003U}) {
    const TestShard shard = uneven_shard(numel);
    for (const std::int64_t kind : kinds()) {
      const KindScope scope(kind);
      EXPECT_EQ(sum_of_squares(shard.gradients), sum_by_definition(shard.gradients))
          << numel << ", " << hwy::TargetName(kind);
    }
  }
}

}  // namespace
}  // namespace zeroth::optim
