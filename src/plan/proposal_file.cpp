// A proposal as a ds_config.json that sets what the user had set.
#include <algorithm>

#include "base/text.h"
#include "config/resolve.h"
#include "config/schema.h"
#include "plan/byte_size.h"
#include "plan/proposal.h"
#include "plan/proposal_carry.h"
#include "plan/proposal_text.h"
#include <fmt/format.h>

namespace zeroth::plan {
namespace {

using config::Resolution;
using config::RunConfig;
using Lines = std::vector<std::string>;

std::string stage_reason(const Proposal& proposal) {
  if (proposal.offload.uses_files()) {
    return "No stage fits into memory alone; with this one the fewest bytes go to files.";
  }
  switch (proposal.stage) {
    case 0:
      return "Everything whole on every rank fits: the fewest bytes travel.";
    case 1:
      return "Master weights and moments in shards: stage 0 does not fit.";
    case 2:
      return "Gradients in shards too, which are then reduced at every micro-step: stage 1 does "
             "not fit.";
    default:
      return "Weights in shards too, gathered for each use: stage 2 does not fit.";
  }
}

std::string micro_batch_reason(const Plan& plan, const Proposal& proposal) {
  const std::string largest =
      fmt::format("At most {} fit at this stage.", proposal.largest_micro_batch);
  return proposal.micro_batch_rows == plan.input.micro_batch_rows
             ? fmt::format("Rows of one forward on one rank, as asked. {}", largest)
             : fmt::format("Rows of one forward on one rank: {}, as asked, fit at no stage. {}",
                           plan.input.micro_batch_rows,
                           largest);
}

// A ds_config.json as it grows.
struct Draft {
  Json values = Json::object();
  Comments comments;

  void put(const std::string& path, Json value, std::string comment) {
    put_at(values, path, std::move(value));
    comments[path] = std::move(comment);
  }
};

void put_batch(const Plan& plan, const Proposal& proposal, Draft& draft) {
  draft.put("train_batch_size",
            proposal.micro_batch_rows * proposal.accumulation * plan.input.ranks,
            fmt::format("Rows of one update, as asked: {} x {} x {} ranks. On another number of "
                        "ranks the three\nno longer fit, and zeroth says so.",
                        proposal.micro_batch_rows,
                        proposal.accumulation,
                        plan.input.ranks));
  draft.put("train_micro_batch_size_per_gpu",
            proposal.micro_batch_rows,
            micro_batch_reason(plan, proposal));
  draft.put("gradient_accumulation_steps",
            proposal.accumulation,
            "Micro-steps of one update: they cost time, and no memory.");
}

void put_type(const std::string& type, Draft& draft) {
  const bool whole = type == "fp32";
  const std::string block = whole ? "bf16" : type;
  put_at(draft.values, block + ".enabled", !whole);
  draft.comments[block] =
      whole
          ? "fp32, as asked. true would halve weights and activations in memory."
          : fmt::format("{} weights and activations; master weights and sums stay in fp32.", type);
}

void put_sharding(const Proposal& proposal, const RunConfig& config, Draft& draft) {
  draft.put("zero_optimization.stage", proposal.stage, stage_reason(proposal));
  draft.put("zero_optimization.reduce_bucket_size",
            config.zero.reduce_bucket_elements,
            "Gradients of one reduction; no bucket is held, so it takes no memory.");
}

// As the settings say, else where the run starts.
std::string folder_of(const RunConfig& config) {
  const config::OffloadSettings& offload = config.offload;
  return !offload.optimizer_path.empty()   ? offload.optimizer_path
         : !offload.parameter_path.empty() ? offload.parameter_path
                                           : ".";
}

void put_offload(const Proposal& proposal, const RunConfig& config, Draft& draft) {
  const auto put = [&](const std::string& block, const std::string& what) {
    draft.put("zero_optimization." + block + ".device",
              "nvme",
              what + " in files: no stage fits without.");
    draft.put("zero_optimization." + block + ".nvme_path",
              folder_of(config),
              "A folder on a fast disk; the files have no names there and go with the run.");
  };
  if (proposal.offload.optimizer == Place::kFiles) {
    put("offload_optimizer", "Master weights, moments and sums of gradients");
  }
  if (proposal.offload.parameters == Place::kFiles) {
    put("offload_param", "Weights, read unit by unit for each use,");
  }
}

// Whether the stage says something: between ranks, or of what one rank keeps in files.
bool stage_acts(const Plan& plan, const Proposal& proposal) {
  return plan.input.ranks > 1 || proposal.offload.uses_files();
}

std::string draft_of(const Plan& plan,
                     const Proposal& proposal,
                     const RunConfig& config,
                     const std::vector<Carried>& carried) {
  Draft draft;
  put_batch(plan, proposal, draft);
  put_type(plan.input.compute_type, draft);
  draft.put("gradient_clipping",
            config.optimizer.max_grad_norm,
            "The gradient's norm is clipped to this; 0: no clipping.");
  if (plan.input.ranks > 1) {  // else nobody to share with: the block would say nothing
    put_sharding(proposal, config, draft);
  } else if (stage_acts(plan, proposal)) {
    draft.put("zero_optimization.stage", proposal.stage, "Says what of a rank rests in files.");
  }
  put_offload(proposal, config, draft);
  for (const Carried& one : carried) {
    if (!one.path.empty()) {
      draft.put(one.path, one.written, fmt::format("As in the run ({}).", one.source));
    }
  }
  return commented_json(draft.values, draft.comments);
}

// A file's text may stand in its place on a command line.
Resolution read_back(const std::string& json, std::int64_t ranks, const Lines& words) {
  Lines arguments{"--deepspeed", json, "--world_size", std::to_string(ranks)};
  arguments.insert(arguments.end(), words.begin(), words.end());
  return config::resolve_all(config::Command::kCheck, arguments, {});
}

// What the proposal leaves without effect, such as a key of stage 3 at stage 1, is not written.
void take_out_idle(const Resolution& read, std::vector<Carried>& carried, Lines& left_out) {
  for (const config::IdleSetting& idle : read.config.without_effect) {
    const auto is_idle = [&](const Carried& one) { return one.key == idle.key; };
    if (const auto found = std::find_if(carried.begin(), carried.end(), is_idle);
        found != carried.end()) {
      left_out.push_back(fmt::format(
          "{} {} (without effect here: {})", found->key, config::shown(found->value), idle.why));
      carried.erase(found);
    }
  }
}

const Json* value_in(const RunConfig& config, const std::string& key) {
  const config::SettingInForce* const found = config.find(key);
  return found == nullptr ? nullptr : &found->value;
}

// What the settings of the run and its proposal should say.
struct Expected {
  std::string key;
  Json value;
  bool must_act = true;  // else only where the key has an effect
};

std::vector<Expected> expected_of(const Plan& plan,
                                  const Proposal& proposal,
                                  const RunConfig& config,
                                  const std::vector<Carried>& carried) {
  std::vector<Expected> expected{
      {"per_device_train_batch_size", proposal.micro_batch_rows},
      {"gradient_accumulation_steps", proposal.accumulation},
      {"bf16", plan.input.compute_type == "bf16"},
      {"fp16", plan.input.compute_type == "fp16"},
      {"max_grad_norm", config.optimizer.max_grad_norm},
      {"zero_stage", proposal.stage, stage_acts(plan, proposal)},
      {"reduce_bucket_size", config.zero.reduce_bucket_elements, plan.input.ranks > 1}};
  for (const Carried& one : carried) {
    expected.push_back({one.key, one.value});
  }
  for (const config::SettingInForce& setting : config.settings) {
    const bool follows = !setting.given && setting.auto_in.empty() && may_be_carried(setting.key);
    if (follows) {  // a default, or derived from what was given
      expected.push_back({setting.key, setting.value, false});
    }
  }
  return expected;
}

Lines differences_of(const Resolution& read, const std::vector<Expected>& all) {
  Lines differences;
  for (const config::Problem& problem : read.problems.all()) {
    differences.push_back("refused: " + problem.message);
  }
  for (const Expected& expected : all) {
    const Json* found = value_in(read.config, expected.key);
    if (found == nullptr ? expected.must_act : *found != expected.value) {
      differences.push_back(fmt::format("{} is {}, and was {}",
                                        expected.key,
                                        found == nullptr ? "without effect" : config::shown(*found),
                                        config::shown(expected.value)));
    }
  }
  return differences;
}

std::string command_line(const char* command,
                         const std::string& file,
                         const std::string& ranks_option,
                         std::int64_t ranks,
                         const Lines& words) {
  Lines all{"zeroth", command, "--deepspeed", file, ranks_option, std::to_string(ranks)};
  all.insert(all.end(), words.begin(), words.end());
  return shell_line(all);
}

// Whether nothing that `zeroth train` needs is missing.
bool can_train(const std::vector<Carried>& carried) {
  const auto& schema = config::schema();
  return std::all_of(schema.begin(), schema.end(), [&](const config::Declaration& key) {
    return (key.required & config::bit(config::Command::kTrain)) == 0 ||
           std::any_of(carried.begin(), carried.end(), [&](const Carried& one) {
             return one.key == key.name;
           });
  });
}

std::string head_of(const Plan& plan, const Proposal& proposal) {
  return fmt::format(
      "Written by zeroth plan: {} parameters, {} of them trained, on {} ranks with {} each.\n"
      "A rank needs {} at the most, with rows of {} tokens.",
      plan.parameters,
      plan.trainable,
      plan.input.ranks,
      byte_text(plan.budget.device),
      byte_text(proposal.needed),
      plan.input.row_tokens);
}

}  // namespace

ProposalFile ds_config(const Plan& plan,
                       const Proposal& proposal,
                       const RunConfig& config,
                       const std::string& file) {
  const std::int64_t ranks = plan.input.ranks;
  std::vector<Carried> carried = carried_settings(config);
  Lines left_out = left_out_of(config);
  const std::string first = draft_of(plan, proposal, config, carried);
  take_out_idle(read_back(first, ranks, words_of(carried)), carried, left_out);
  ProposalFile result{.text = {}, .words = words_of(carried), .differences = {}};
  const std::string json = draft_of(plan, proposal, config, carried);
  result.differences = differences_of(read_back(json, ranks, result.words),
                                      expected_of(plan, proposal, config, carried));
  Lines head{head_of(plan, proposal),
             "Check it: " + command_line("check", file, "--world_size", ranks, result.words)};
  if (can_train(carried)) {
    head.push_back("Train with it: " + command_line("train", file, "--ranks", ranks, result.words));
  }
  for (const std::string& line : left_out) {
    head.push_back("Left out: " + line);
  }
  for (const std::string& line : result.differences) {
    head.push_back("Read back, this file differs from the plan: " + line);
  }
  result.text = comment_lines(join(head, "\n")) + json;
  return result;
}

}  // namespace zeroth::plan
