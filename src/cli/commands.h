#pragma once

#include <span>
#include <string>

// The commands of the front, one file each; they return the exit code and throw zeroth::Error.
// `arguments` are the words after the command's name.
namespace zeroth::cli {

using Arguments = std::span<const std::string>;

[[nodiscard]] int run_train(Arguments arguments);
[[nodiscard]] int run_eval(Arguments arguments);
[[nodiscard]] int run_predict(Arguments arguments);
[[nodiscard]] int run_launch(Arguments arguments);
[[nodiscard]] int run_check(Arguments arguments);
[[nodiscard]] int run_plan(Arguments arguments);
[[nodiscard]] int run_explain(Arguments arguments);
[[nodiscard]] int run_inspect(Arguments arguments);
[[nodiscard]] int run_env(Arguments arguments);
[[nodiscard]] int run_export(Arguments arguments);
[[nodiscard]] int run_bench(Arguments arguments);
[[nodiscard]] int run_init_model(Arguments arguments);
[[nodiscard]] int run_tokenize(Arguments arguments);
[[nodiscard]] int run_train_tokenizer(Arguments arguments);

}  // namespace zeroth::cli
