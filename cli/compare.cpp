// foretrain compare: two scenarios, or one and its what-ifs, side by side.
#include <memory>

#include <fmt/format.h>

#include "cli/output.h"
#include "cli/prediction_output.h"
#include "cli/scenario_options.h"
#include "cli/verbs.h"
#include "model/base/format.h"

namespace foretrain {
namespace {

struct Options {
  ScenarioOptions scenario;
  std::optional<std::string> other;
  std::vector<std::string> what_if;
  OutputOptions output;
};

struct Side {
  std::string name;
  Scenario scenario;
  Prediction prediction;
};

std::string change(double before, double after) {
  if (!(before > 0)) return "";
  return fmt::format("{:+.1f} %", 100 * (after / before - 1));
}

// One --what-if may hold several assignments separated by commas outside quotes: a=1,b=2.
Expected<Overrides> parse_what_if(const std::string& text) {
  Overrides list;
  std::size_t from = 0;
  while (from <= text.size()) {
    std::size_t comma = text.find(',', from);
    // A comma that no "path=" follows belongs to the value.
    while (comma != std::string::npos && text.find('=', comma) == std::string::npos)
      comma = std::string::npos;
    auto assignment =
        split_assignment(text.substr(from, comma == std::string::npos ? comma : comma - from), "--what-if");
    if (!assignment) return fail(std::move(assignment.error()));
    list.push_back(std::move(*assignment));
    if (comma == std::string::npos) break;
    from = comma + 1;
  }
  return list;
}

int run(Options& o) {
  std::vector<Side> sides;
  const auto add = [&](const std::string& name, Expected<Scenario> scenario) {
    if (!scenario) return report(scenario.error());
    PredictOptions options;
    auto prediction = predict(*scenario, options);
    if (!prediction) return report(prediction.error());
    sides.push_back(Side{name, std::move(*scenario), std::move(*prediction)});
    return 0;
  };
  if (!o.other && o.what_if.empty()) {
    return report({Error{ErrorCode::usage,
                         {},
                         "compare: needs a second scenario or --what-if",
                         "write, for example, --what-if cluster.preset=4xa30_nvlink"}});
  }
  if (const int code = add(o.other ? o.scenario.file : "as it is", o.scenario.read())) return code;
  if (o.other) {
    ScenarioOptions second = o.scenario;
    second.file = *o.other;
    if (const int code = add(second.file, second.read())) return code;
  }
  for (const std::string& text : o.what_if) {
    auto overrides = parse_what_if(text);
    if (!overrides) return report(overrides.error());
    if (const int code = add(text, o.scenario.read(*overrides))) return code;
  }
  TextTable table({"<scenario", "step time (ms)", "90 % interval", "change", "tokens/s", "MFU",
                   "peak memory (GiB)", "bubble", "exposed comm. (ms)", "<fits"});
  JsonValue list = JsonValue::make_array();
  for (const Side& side : sides) {
    const Prediction& p = side.prediction;
    table.row({side.name, format_fixed(p.step_time_ms.value, 2),
               fmt::format("{:.2f} to {:.2f}", p.step_time_ms.low, p.step_time_ms.high),
               &side == &sides.front()
                   ? ""
                   : change(sides.front().prediction.step_time_ms.value, p.step_time_ms.value),
               format_whole(static_cast<std::int64_t>(p.tokens_per_s.value)), format_percent(p.mfu.value),
               format_fixed(p.peak_memory_gib.value, 2), format_percent(p.bubble_fraction),
               format_fixed(p.exposed_communication.ms(), 2), p.fits ? "yes" : "NO"});
    JsonValue one = to_json(side.scenario, p);
    one.set("what_if", json(side.name));
    one.set("step_time_change_pct",
            json(100 * (p.step_time_ms.value / sides.front().prediction.step_time_ms.value - 1)));
    list.append(std::move(one));
  }
  std::string text = fmt::format("{}\n\n", bold(sides.front().scenario.name)) + table.to_text();
  std::vector<const Prediction*> predictions;
  for (const Side& side : sides) predictions.push_back(&side.prediction);
  text += warnings_text(predictions);
  return write_output(o.output, text, json_object({{"scenarios", std::move(list)}}), table.to_csv());
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "compare",
      "Compares two scenarios, or one with its what-ifs.\n\n"
      "Examples:\n  foretrain compare scenarios/ddp.json scenarios/fsdp.json\n"
      "  foretrain compare scenarios/ddp.json --what-if cluster.preset=4xa30_nvlink\n"
      "  foretrain compare scenarios/ddp.json --what-if cluster.pcie=pcie_gen5_x16 --what-if "
      "training.micro_batch_size=8\n");
  auto options = std::make_shared<Options>();
  add_scenario_options(*verb, options->scenario);
  verb->add_option("other", options->other, "a second scenario")->type_name("FILE");
  verb->add_option("--what-if", options->what_if,
                   "the scenario with a field changed (repeatable; a=1,b=2 changes two)")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  add_output_options(*verb, options->output);
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace foretrain
