// foretrain plan: which strategy? Simulates every one that makes sense, ranks them, says why each lost.
#include <algorithm>
#include <memory>
#include <mutex>

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include "cli/output.h"
#include "cli/plan_candidates.h"
#include "cli/prediction_output.h"
#include "cli/scenario_options.h"
#include "cli/verbs.h"
#include "model/base/format.h"

namespace foretrain {
namespace {

struct Options {
  ScenarioOptions scenario;
  std::optional<std::int32_t> gpus;
  std::size_t top = 12;
  bool all = false;
  OutputOptions output;
};

struct Result {
  Candidate candidate;
  std::optional<Prediction> prediction;
  Errors errors;
  std::string reason;
};

// Fitting before not fitting, then fast before slow, then small before large, then the order of enumeration.
bool better(const Result& a, const Result& b) {
  if (a.prediction.has_value() != b.prediction.has_value()) return a.prediction.has_value();
  if (!a.prediction) return false;
  if (a.prediction->fits != b.prediction->fits) return a.prediction->fits;
  const double ta = a.prediction->step_time_ms.value;
  const double tb = b.prediction->step_time_ms.value;
  if (ta != tb) return ta < tb;
  return a.prediction->reserved_memory_gib.value < b.prediction->reserved_memory_gib.value;
}

// The command-line options that make a scenario the candidate.
std::string options_of(const Candidate& c) {
  const ParallelPlan& p = c.plan;
  std::string text =
      fmt::format(" --dp {} --fsdp {} --tp {} --pp {} --micro-batch-size {} --micro-batches {}", p.dp, p.fsdp,
                  p.tp, p.pp, c.training.micro_batch_size, c.training.micro_batches);
  const auto set = [&](const char* path, const std::string& value) {
    text += fmt::format(" --set {}={}", path, value);
  };
  set("parallel.zero_stage", fmt::format("{}", p.zero_stage));
  if (p.fsdp > 1) set("parallel.fsdp_options.unit", "block");
  if (p.tp > 1) {
    set("parallel.tp_kind", "megatron");
    set("parallel.sequence_parallel", p.sequence_parallel ? "true" : "false");
  }
  if (p.pp > 1) {
    const bool interleaved = p.schedule == PipelineSchedule::interleaved;
    set("parallel.schedule", interleaved                             ? "interleaved"
                             : p.schedule == PipelineSchedule::gpipe ? "gpipe"
                                                                     : "1f1b");
    set("parallel.virtual_stages", fmt::format("{}", p.virtual_stages));
  }
  const char* const kRecompute[] = {"none", "selective", "full"};
  set("training.recompute", kRecompute[static_cast<std::size_t>(c.training.recompute)]);
  return text;
}

int run(const Options& o) {
  auto scenario = o.scenario.read();
  if (!scenario) return report(scenario.error());
  const std::int32_t available = scenario->cluster.gpu_count();
  const std::int32_t gpus = o.gpus.value_or(available);
  if (gpus > available) {
    return report({Error{ErrorCode::usage,
                         {},
                         fmt::format("plan: --gpus {} is more than the {} of cluster \"{}\"", gpus, available,
                                     scenario->cluster.name),
                         "raise cluster.nodes or use fewer"}});
  }
  std::vector<Result> results;
  for (Candidate& c : enumerate_candidates(*scenario, gpus)) results.push_back(Result{c, {}, {}, {}});
  if (results.empty()) {
    return report({Error{ErrorCode::infeasible,
                         {},
                         fmt::format("plan: no strategy splits this global batch over {} GPUs", gpus),
                         "use a batch (micro_batch_size x micro_batches x dp x fsdp) that the GPUs divide"}});
  }
  Progress progress("strategies simulated", results.size());
  std::mutex mutex;
  tbb::parallel_for(std::size_t{0}, results.size(), [&](std::size_t i) {
    Result& r = results[i];
    PredictOptions options;
    options.intervals = false;
    auto prediction = predict(scenario->model, r.candidate.training, r.candidate.plan, scenario->cluster,
                              scenario->profile, options);
    if (prediction) {
      r.prediction = std::move(*prediction);
    } else {
      r.errors = std::move(prediction.error());
    }
    const std::lock_guard lock(mutex);
    progress.step();
  });
  std::stable_sort(results.begin(), results.end(), better);
  const Result& winner = results.front();
  if (!winner.prediction) return report(winner.errors);
  const bool any_fits = winner.prediction->fits;
  std::size_t fitting = 0;
  for (Result& r : results) {
    if (!r.prediction) {
      r.reason = r.errors.front().message;
    } else if (!r.prediction->fits) {
      r.reason = reason_not_fitting(*r.prediction);
    } else {
      ++fitting;
      r.reason = &r == &winner ? "fastest" : reason_behind(*winner.prediction, *r.prediction);
    }
  }
  TextTable table(
      {"rank", "<strategy", "step time (ms)", "tokens/s", "MFU", "reserved memory (GiB)", "bubble", "<why"});
  JsonValue list = JsonValue::make_array();
  std::size_t shown = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    if (!r.prediction) continue;
    const Prediction& p = *r.prediction;
    if (o.all || shown < o.top) {
      table.row({fmt::format("{}", i + 1), describe(r.candidate), format_fixed(p.step_time_ms.value, 1),
                 format_whole(static_cast<std::int64_t>(p.tokens_per_s.value)), format_percent(p.mfu.value),
                 format_fixed(p.reserved_memory_gib.value, 1), format_percent(p.bubble_fraction), r.reason});
      ++shown;
    }
    Scenario one = *scenario;
    one.parallel = r.candidate.plan;
    one.training = r.candidate.training;
    JsonValue entry = json_object({{"rank", json(static_cast<std::int64_t>(i + 1))},
                                   {"strategy", json(describe(r.candidate))},
                                   {"reason", json(r.reason)},
                                   {"prediction", to_json(one, p)}});
    list.append(std::move(entry));
  }
  std::string text = fmt::format("{} on {} GPUs: {} strategies simulated, {} fit\n\n", bold(scenario->name),
                                 gpus, results.size(), fitting) +
                     table.to_text();
  // What people would have tried but for its memory: the fastest that does not fit.
  const Result* missed = nullptr;
  for (const Result& r : results) {
    if (!r.prediction || r.prediction->fits) continue;
    if (missed == nullptr || r.prediction->step_time_ms.value < missed->prediction->step_time_ms.value)
      missed = &r;
  }
  if (missed != nullptr) {
    text += fmt::format("\n{} do not fit. The fastest of them would take {:.1f} ms: {}; {}\n",
                        results.size() - fitting, missed->prediction->step_time_ms.value,
                        describe(missed->candidate), missed->reason);
  }
  if (any_fits) {
    text += "\nTo predict the first by itself: foretrain predict " + o.scenario.file +
            options_of(winner.candidate) + "\n";
  }
  const int code =
      write_output(o.output, text, json_object({{"strategies", std::move(list)}}), table.to_csv());
  if (code == 0 && !any_fits) {
    return report({Error{ErrorCode::infeasible,
                         {},
                         "no strategy fits into the GPUs' memory",
                         "use more GPUs, GPUs with more memory, or a smaller batch or sequence"}});
  }
  return code;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "plan",
      "Ranks the strategies for a model, a cluster and a global batch, with the reason each lost.\n\n"
      "Examples:\n  foretrain plan scenarios/ddp.json\n"
      "  foretrain plan scenarios/qwen2.5_7b_2x4.json --top 20\n"
      "  foretrain plan scenarios/ddp.json --gpus 2 --json plan.json\n");
  auto options = std::make_shared<Options>();
  add_scenario_options(*verb, options->scenario);
  verb->add_option("--gpus", options->gpus, "use this many GPUs (default: all of the cluster)")
      ->check(CLI::PositiveNumber);
  verb->add_option("--top", options->top, "rows to show (default 12)");
  verb->add_flag("--all", options->all, "show every strategy");
  add_output_options(*verb, options->output);
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace foretrain
