#include <algorithm>

#include "parity/runs.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// The parity matrix: stage x ranks x accumulation x type x {LoRA, full} x {overlap} x {buckets} x
// {recomputation}. Within one grid, accumulation, type and kind of training, stages 0 and 1 give
// the same bits, stages 2 and 3 too, and all four without accumulation, whatever the rest says;
// between grids the results agree to rounding. The suite walks a subset in which every pair of
// values of two axes meets; the slow program, with ZEROTH_WHOLE_MATRIX, walks all rows.
namespace zeroth::parity {
namespace {

constexpr std::int64_t kRows = 16;
constexpr int kVariants = 8;  // of overlap, buckets and recomputation

struct Kind {
  at::ScalarType dtype;
  bool lora;
};

void PrintTo(const Kind& kind, std::ostream* out) {
  *out << name_of({.lora = kind.lora, .dtype = kind.dtype});
}

Case row_of(const Kind& kind, int ranks, std::int64_t accumulation, int stage, int variant) {
  Case row{.stage = stage,
           .ranks = ranks,
           .rows = kRows,
           .micro_rows = kRows / (ranks * accumulation),
           .lora = kind.lora,
           .dropout = kind.lora ? 0.1 : 0.0,
           .dtype = kind.dtype,
           .updates = 2,
           .recompute = (variant & 4) != 0};
  row.tuning.overlap = (variant & 1) == 0;
  if ((variant & 2) != 0) {
    row.tuning.reduce_bucket_elements = 3000;
    row.tuning.allgather_bucket_elements = 2000;
    row.tuning.sub_group_elements = 1500;
    row.tuning.prefetch_elements = 100'000;
  }
  return row;
}

// Which variants of a stage are walked. Over the grids each stage meets each variant.
std::vector<int> variants_of(int grid, int stage) {
#ifdef ZEROTH_WHOLE_MATRIX
  (void)grid, (void)stage;
  return {0, 1, 2, 3, 4, 5, 6, 7};
#else
  return {(3 * grid + 5 * stage) % kVariants};
#endif
}

// How far rounding may carry two updates of another cut.
double tolerance_of(at::ScalarType dtype) {
  return dtype == at::kFloat ? 1e-5 : dtype == at::kBFloat16 ? 2e-3 : 1e-3;
}

class Matrix : public testing::TestWithParam<Kind> {};

INSTANTIATE_TEST_SUITE_P(Kinds,
                         Matrix,
                         testing::Values(Kind{at::kFloat, false},
                                         Kind{at::kFloat, true},
                                         Kind{at::kBFloat16, false},
                                         Kind{at::kBFloat16, true},
                                         Kind{at::kHalf, false},
                                         Kind{at::kHalf, true}),
                         [](const auto& test) {
                           const Kind& kind = test.param;
                           const std::string type = kind.dtype == at::kFloat      ? "fp32"
                                                    : kind.dtype == at::kBFloat16 ? "bf16"
                                                                                  : "fp16";
                           return type + (kind.lora ? "_lora" : "_full");
                         });

TEST_P(Matrix, EveryRowGivesTheBitsOfItsPairAndTheNumbersOfAll) {
  const Outcome alone = run(row_of(GetParam(), 1, 1, 0, 0));
  int grid = 0;
  int rows = 0;
  for (const int ranks : {1, 2, 4}) {
    for (const std::int64_t accumulation : {1, 4}) {
      std::array<std::optional<Outcome>, 2> of_pair;
      for (int stage = 0; stage <= 3; ++stage) {
        for (const int variant : variants_of(grid, stage)) {
          const Case row = row_of(GetParam(), ranks, accumulation, stage, variant);
          SCOPED_TRACE(name_of(row));
          const Outcome outcome = run(row);
          ++rows;
          auto& pair = of_pair[accumulation == 1 || stage < 2 ? 0 : 1];
          if (pair) {
            expect_same_bits(outcome, *pair);
          } else {
            expect_near(outcome, alone, tolerance_of(GetParam().dtype));
            pair = outcome;
          }
        }
      }
      ++grid;
    }
  }
  RecordProperty("rows", rows);
}

}  // namespace
}  // namespace zeroth::parity
