#include "verify.h"

#include <algorithm>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::quickstart {
namespace {

std::vector<Row> read_rows(const std::filesystem::path& path) {
  const Json json = parse_json(read_file(path, ErrorKind::kData), path.string(), ErrorKind::kData);
  std::vector<Row> rows;
  for (const Json& row : json) {
    rows.push_back({.instruction = row.at("instruction"),
                    .input = row.at("input"),
                    .output = row.at("output")});
  }
  return rows;
}

bool is_english(const Row& row) {
  return std::all_of(row.input.begin(), row.input.end(), [](char c) { return c >= 0; });
}

const Row& nearest_row(const std::vector<Row>& rows, const std::string& input) {
  std::size_t best = 0;
  std::size_t best_distance = edit_distance(rows[0].input, input);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::size_t length_gap =
        std::max(rows[i].input.size(), input.size()) - std::min(rows[i].input.size(), input.size());
    if (length_gap >= best_distance) {
      continue;  // the distance is at least the gap
    }
    const std::size_t distance = edit_distance(rows[i].input, input);
    if (distance < best_distance) {
      best = i;
      best_distance = distance;
    }
  }
  return rows[best];
}

std::size_t count_shared(const std::vector<Row>& rows, std::set<std::string>& inputs) {
  std::size_t num_shared = 0;
  for (const Row& row : rows) {
    num_shared += inputs.insert(row.input).second ? 0 : 1;
  }
  return num_shared;
}

}  // namespace

TaskData read_task_data(const std::filesystem::path& folder) {
  return {.train = read_rows(folder / "train.json"),
          .validation = read_rows(folder / "validation.json"),
          .heldout = read_rows(folder / "heldout.json")};
}

DataFacts measure(const TaskData& data) {
  DataFacts facts{.num_train = data.train.size(),
                  .num_validation = data.validation.size(),
                  .num_heldout = data.heldout.size()};
  std::set<std::string> answers;
  std::set<std::string> inputs;
  for (const Row& row : data.train) {
    inputs.insert(row.input);
    answers.insert(row.output);
  }
  facts.num_shared_inputs =
      count_shared(data.validation, inputs) + count_shared(data.heldout, inputs);
  for (const Row& row : data.heldout) {
    answers.insert(row.output);
    facts.num_heldout_english += is_english(row) ? 1 : 0;
    facts.num_nearest_right += nearest_row(data.train, row.input).output == row.output ? 1 : 0;
  }
  facts.num_distinct_answers = answers.size();
  return facts;
}

std::string describe(const DataFacts& facts) {
  return fmt::format(
      "rows: {} train, {} validation, {} held-out ({} English, {} Chinese)\n"
      "inputs that two files share: {}\n"
      "distinct answers: {}\n"
      "held-out rows that the nearest training row's answer gets right: {} of {}\n",
      facts.num_train,
      facts.num_validation,
      facts.num_heldout,
      facts.num_heldout_english,
      facts.num_heldout - facts.num_heldout_english,
      facts.num_shared_inputs,
      facts.num_distinct_answers,
      facts.num_nearest_right,
      facts.num_heldout);
}

void require_promises(const DataFacts& facts) {
  constexpr std::size_t kFewestAnswers = 1000;
  std::vector<std::string> broken;
  if (facts.num_shared_inputs > 0) {
    broken.push_back(fmt::format("{} inputs stand in two files", facts.num_shared_inputs));
  }
  if (facts.num_distinct_answers < kFewestAnswers) {
    broken.push_back(fmt::format(
        "{} distinct answers are fewer than {}", facts.num_distinct_answers, kFewestAnswers));
  }
  if (facts.num_nearest_right * 10 >= facts.num_heldout) {
    broken.push_back(fmt::format("the nearest training row answers {} of {} held-out rows",
                                 facts.num_nearest_right,
                                 facts.num_heldout));
  }
  if (facts.num_heldout_english == 0 || facts.num_heldout_english == facts.num_heldout) {
    broken.push_back("the held-out rows are in one language only");
  }
  if (!broken.empty()) {
    throw Error(
        ErrorKind::kData,
        fmt::format("the quickstart's data breaks its promises: {}\n  Change the generator in "
                    "examples/quickstart and run make.sh again.",
                    join(broken, "; ")));
  }
}

}  // namespace zeroth::quickstart
