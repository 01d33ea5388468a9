// foretrain predict: the time, memory and cost of one scenario's step.
#include <memory>

#include <fmt/format.h>

#include "cli/output.h"
#include "cli/prediction_output.h"
#include "cli/scenario_options.h"
#include "cli/timeline_output.h"
#include "cli/verbs.h"
#include "model/base/format.h"

namespace foretrain {
namespace {

struct Options {
  ScenarioOptions scenario;
  OutputOptions output;
  bool sensitivity = false, memory = false, schedule = false, critical_path = false, no_intervals = false,
       all_ranks = false, ops = false;
  std::string fidelity = "fluid";
  std::optional<std::string> trace, svg;
};

std::string sensitivity_text(const std::vector<SensitivityRow>& rows) {
  TextTable table({"<twice of this", "step time won", "step time (ms)"});
  for (const SensitivityRow& row : rows) {
    table.row({row.name, format_percent(row.gain_percent / 100), format_fixed(row.step_time_ms.value, 2)});
  }
  return table.to_text();
}

std::string critical_path_text(const CriticalPath& path) {
  TextTable table({"<critical path", "start (ms)", "length (ms)"});
  constexpr std::size_t kMost = 40;
  std::size_t shown = 0;
  for (const CriticalStep& step : path.steps) {
    if (shown++ == kMost) {
      table.row({fmt::format("... and {} more", path.steps.size() - kMost), "", ""});
      break;
    }
    const std::string who =
        step.rank_class >= 0 ? fmt::format("stage {}: {}", step.rank_class, step.label) : step.label;
    table.row({who, format_fixed(step.start.ms(), 3), format_fixed((step.end - step.start).ms(), 3)});
  }
  table.rule();
  table.row({fmt::format("compute {:.2f} ms, communication {:.2f} ms, host {:.2f} ms", path.compute.ms(),
                         path.communication.ms(), path.host.ms()),
             "", format_fixed(path.length.ms(), 3)});
  return table.to_text();
}

int run(const Options& o) {
  auto scenario = o.scenario.read();
  if (!scenario) return report(scenario.error());
  PredictOptions options;
  options.intervals = !o.no_intervals;
  options.simulation.fidelity = o.fidelity == "chunk" ? Fidelity::chunk : Fidelity::fluid;
  options.simulation.timeline = o.trace || o.svg || o.schedule;
  options.simulation.all_ranks = o.all_ranks;
  options.simulation.ops = o.ops;
  options.simulation.host_track = o.trace.has_value();
  options.simulation.memory_over_time = o.trace.has_value();
  options.simulation.graph = o.critical_path;
  auto prediction = predict(*scenario, options);
  if (!prediction) return report(prediction.error());
  std::string text = summary_text(*scenario, *prediction) + "\n" + breakdown_text(*prediction);
  JsonValue out = to_json(*scenario, *prediction);
  if (o.memory) text += "\n" + memory_text(*prediction);
  if (o.schedule) text += "\n" + schedule_text(*prediction, 160);
  if (o.critical_path) {
    auto program = build_step_program(scenario->model, scenario->training, scenario->parallel);
    if (!program) return report(program.error());
    const CriticalPath path = critical_path(*program, prediction->graph);
    text += "\n" + critical_path_text(path);
    out.set("critical_path_ms", json(path.length.ms()));
  }
  if (o.sensitivity) {
    auto rows = sensitivity(scenario->model, scenario->training, scenario->parallel, scenario->cluster,
                            scenario->profile, options.simulation.fidelity);
    if (!rows) return report(rows.error());
    text += "\n" + sensitivity_text(*rows);
    JsonValue list = JsonValue::make_array();
    for (const SensitivityRow& row : *rows) {
      list.append(json_object({{"name", json(row.name)},
                               {"gain_pct", json(row.gain_percent)},
                               {"step_time_ms", json(row.step_time_ms.value)}}));
    }
    out.set("sensitivity", std::move(list));
  }
  if (scenario->cost.tokens > 0) {
    const CostEstimate cost = estimate_cost(*prediction, scenario->cluster,
                                            {scenario->cost.tokens, scenario->cost.price_per_gpu_hour_usd,
                                             scenario->cost.electricity_usd_per_kwh});
    text += fmt::format("\n  {} tokens: {} steps, {:.1f} h, {:.1f} GPU h{}, {:.1f} kWh\n",
                        format_count(scenario->cost.tokens), format_count(cost.steps), cost.hours.value,
                        cost.gpu_hours.value, cost.usd.value > 0 ? ", " + format_money(cost.usd.value) : "",
                        cost.energy_kwh.value);
    out.set("cost", json_object({{"hours", to_json(cost.hours)},
                                 {"gpu_hours", to_json(cost.gpu_hours)},
                                 {"usd", to_json(cost.usd)},
                                 {"energy_kwh", to_json(cost.energy_kwh)}}));
  }
  if (o.trace) {
    if (auto written = write_trace(prediction->timeline, *o.trace); !written) return report(written.error());
    text += fmt::format(
        "\n  timeline written to {} (open it at https://ui.perfetto.dev or chrome://tracing)\n", *o.trace);
  }
  if (o.svg) {
    if (auto written = write_svg(prediction->timeline, *scenario, *o.svg); !written)
      return report(written.error());
    text += fmt::format("\n  picture written to {}\n", *o.svg);
  }
  JsonValue flat = out;
  std::string csv = "name,step_time_ms,tokens_per_s,mfu,peak_mem_gib\n";
  csv +=
      fmt::format("{},{},{},{},{}\n", scenario->name, prediction->step_time_ms.value,
                  prediction->tokens_per_s.value, prediction->mfu.value, prediction->peak_memory_gib.value);
  const int code = write_output(o.output, text, out, csv);
  if (code != 0) return code;
  if (!prediction->fits) {
    return report({Error{ErrorCode::infeasible,
                         {},
                         fmt::format("the step needs {:.2f} GiB of {:.2f} GiB per GPU",
                                     prediction->reserved_memory_gib.value, prediction->gpu_memory.gib()),
                         "`foretrain plan` lists what fits"}});
  }
  return 0;
}

}  // namespace

void add_predict(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "predict",
      "Predicts the time, memory and cost of one training step.\n\n"
      "Examples:\n  foretrain predict scenarios/ddp.json\n"
      "  foretrain predict scenarios/a30_pcie/base.json --dp 4 --precision fp16_amp --sensitivity\n"
      "  foretrain predict scenarios/llama3_70b_64.json --memory --schedule\n"
      "  foretrain predict scenarios/ddp.json --trace ddp.json --svg ddp.svg\n");
  auto options = std::make_shared<Options>();
  add_scenario_options(*verb, options->scenario);
  verb->add_flag("--memory", options->memory, "table of memory by class");
  verb->add_flag("--schedule", options->schedule, "pipeline diagram");
  verb->add_flag("--critical-path", options->critical_path, "what the step waited for, in order");
  verb->add_flag("--sensitivity", options->sensitivity, "what twice of each link, rate or latency would win");
  verb->add_flag("--no-intervals", options->no_intervals, "skip the 90 % intervals (faster)");
  verb->add_option("--fidelity", options->fidelity, "fluid (default) or chunk")
      ->check(CLI::IsMember({"fluid", "chunk"}));
  verb->add_option("--trace", options->trace, "write the timeline as a Chrome trace (.json or .json.gz)")
      ->type_name("FILE");
  verb->add_option("--svg", options->svg, "write the timeline as a picture")->type_name("FILE");
  verb->add_flag("--all-ranks", options->all_ranks, "timeline of every rank, not one per pipeline stage");
  verb->add_flag("--ops", options->ops, "timeline with every kernel");
  add_output_options(*verb, options->output);
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace foretrain
