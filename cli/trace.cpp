// foretrain trace: the timeline of a scenario as files for other tools, and as a picture.
#include <memory>

#include <fmt/format.h>

#include "cli/output.h"
#include "cli/prediction_output.h"
#include "cli/scenario_options.h"
#include "cli/timeline_output.h"
#include "cli/verbs.h"
#include "model/base/format.h"
#include "model/timeline/statistics.h"

namespace foretrain {
namespace {

struct Options {
  ScenarioOptions scenario;
  std::optional<std::string> chrome, hta, svg;
  bool ops = false, one_per_stage = false;
  OutputOptions output;
};

int run(const Options& o) {
  if (!o.chrome && !o.hta && !o.svg) {
    return report({Error{
        ErrorCode::usage, {}, "trace: nothing to write", "give --chrome FILE, --hta FOLDER or --svg FILE"}});
  }
  auto scenario = o.scenario.read();
  if (!scenario) return report(scenario.error());
  PredictOptions options;
  options.intervals = false;
  options.simulation.timeline = true;
  options.simulation.all_ranks = !o.one_per_stage;
  options.simulation.ops = o.ops;
  options.simulation.memory_over_time = true;
  auto prediction = predict(*scenario, options);
  if (!prediction) return report(prediction.error());
  std::string text = fmt::format("{}: {} spans of {} ranks, step time {:.2f} ms\n", scenario->name,
                                 prediction->timeline.spans.size(), prediction->timeline.ranks,
                                 prediction->step_time_ms.value);
  const auto wrote = [&](const char* what, const std::string& where) {
    text += fmt::format("  {} written to {}\n", what, where);
  };
  if (o.chrome) {
    if (auto written = write_trace(prediction->timeline, *o.chrome); !written) return report(written.error());
    wrote("Chrome trace", *o.chrome);
  }
  if (o.hta) {
    if (auto written = write_hta(prediction->timeline, *o.hta); !written) return report(written.error());
    wrote("Holistic Trace Analysis folder", *o.hta);
  }
  if (o.svg) {
    if (auto written = write_svg(prediction->timeline, *scenario, *o.svg); !written)
      return report(written.error());
    wrote("picture", *o.svg);
  }
  TextTable table({"rank", "computing (ms)", "communicating (ms)", "both (ms)", "idle (ms)"});
  JsonValue ranks = JsonValue::make_array();
  constexpr std::size_t kMost = 16;
  const std::vector<RankActivity> activity = activity_of(prediction->timeline);
  for (const RankActivity& a : activity) {
    if (ranks.children().size() < kMost) {
      table.row({fmt::format("{}", a.rank), format_fixed(a.computing.ms(), 3),
                 format_fixed(a.communicating.ms(), 3), format_fixed(a.both.ms(), 3),
                 format_fixed(a.idle.ms(), 3)});
    }
    ranks.append(json_object({{"rank", json(static_cast<std::int64_t>(a.rank))},
                              {"computing_ms", json(a.computing.ms())},
                              {"communicating_ms", json(a.communicating.ms())},
                              {"both_ms", json(a.both.ms())},
                              {"idle_ms", json(a.idle.ms())}}));
  }
  text += "\n" + table.to_text();
  if (activity.size() > kMost) text += fmt::format("... and {} more ranks\n", activity.size() - kMost);
  text += warnings_text({&*prediction});
  JsonValue out = to_json(*scenario, *prediction);
  out.set("ranks", std::move(ranks));
  return write_output(o.output, text, out, "");
}

}  // namespace

void add_trace(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "trace",
      "Writes the simulated timeline for Perfetto, Holistic Trace Analysis or as a picture.\n\n"
      "Examples:\n  foretrain trace scenarios/ddp.json --chrome ddp.json.gz\n"
      "  foretrain trace scenarios/ddp.json --hta traces/\n  foretrain trace scenarios/ddp.json --svg "
      "ddp.svg\n");
  auto options = std::make_shared<Options>();
  add_scenario_options(*verb, options->scenario);
  verb->add_option("--chrome", options->chrome, "Chrome trace (.json or .json.gz), opens in Perfetto")
      ->type_name("FILE");
  verb->add_option("--hta", options->hta, "folder with one Kineto-style trace per rank")->type_name("FOLDER");
  verb->add_option("--svg", options->svg, "picture of the tracks")->type_name("FILE");
  verb->add_flag("--ops", options->ops, "every kernel, not only instructions");
  verb->add_flag("--one-per-stage", options->one_per_stage, "one rank per pipeline stage");
  add_output_options(*verb, options->output, false);
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace foretrain
