// foretrain cost: the scaling calculator. Time, money and energy for a number of tokens over numbers of GPUs.
#include <memory>

#include <fmt/format.h>

#include "cli/output.h"
#include "cli/prediction_output.h"
#include "cli/scenario_options.h"
#include "cli/verbs.h"
#include "model/base/format.h"
#include "model/base/quantity.h"
#include "model/base/text.h"

namespace foretrain {
namespace {

struct Options {
  ScenarioOptions scenario;
  std::optional<std::string> tokens, price, electricity;
  std::string nodes = "1,2,4,8";
  OutputOptions output;
};

int run(const Options& o) {
  Overrides more;
  if (o.tokens) more.emplace_back("cost.tokens", *o.tokens);
  if (o.price) more.emplace_back("cost.price_per_gpu_hour", *o.price);
  if (o.electricity) more.emplace_back("cost.electricity", *o.electricity);
  auto base = o.scenario.read(more);
  if (!base) return report(base.error());
  if (!(base->cost.tokens > 0)) {
    return report({Error{ErrorCode::usage,
                         {},
                         "cost: no number of tokens",
                         "give --tokens 300e9, or cost.tokens in the scenario"}});
  }
  const std::int64_t first_nodes = std::max(1, base->cluster.node_count());
  TextTable table({"nodes", "GPUs", "<plan", "step time (ms)", "tokens/s", "days", "GPU hours", "cost (USD)",
                   "energy (kWh)", "electricity (USD)", "scaling"});
  JsonValue list = JsonValue::make_array();
  double first_per_gpu = 0;
  std::string warnings;
  for (const std::string_view text : split(o.nodes, ',')) {
    const auto count = parse_count(trim(text));
    if (!count || *count < 1) {
      return report(
          {Error{ErrorCode::usage,
                 {},
                 fmt::format("cost: --over-nodes {}: expected whole numbers from 1", in_quotes(o.nodes)),
                 "write, for example, --over-nodes 1,2,4,8"}});
    }
    // More nodes hold more replicas of the same plan; the global batch grows with them.
    const std::int64_t replicas = static_cast<std::int64_t>(base->parallel.dp) * *count / first_nodes;
    if (replicas < 1) continue;
    Overrides at = more;
    at.emplace_back("cluster.nodes", fmt::format("{}", *count));
    at.emplace_back("parallel.dp", fmt::format("{}", replicas));
    auto scenario = o.scenario.read(at);
    if (!scenario) return report(scenario.error());
    auto prediction = predict(*scenario, PredictOptions{});
    if (!prediction) return report(prediction.error());
    warnings += warnings.empty() ? warnings_text({&*prediction}) : "";
    const CostEstimate c = estimate_cost(*prediction, scenario->cluster,
                                         {scenario->cost.tokens, scenario->cost.price_per_gpu_hour_usd,
                                          scenario->cost.electricity_usd_per_kwh});
    const double per_gpu = prediction->tokens_per_s.value / prediction->gpus;
    if (first_per_gpu == 0) first_per_gpu = per_gpu;
    const auto range = [](const Interval& i, double scale, int decimals) {
      return fmt::format("{} ({} to {})", format_fixed(i.value * scale, decimals),
                         format_fixed(i.low * scale, decimals), format_fixed(i.high * scale, decimals));
    };
    table.row({fmt::format("{}", *count), fmt::format("{}", prediction->gpus), describe(scenario->parallel),
               format_fixed(prediction->step_time_ms.value, 1),
               format_whole(static_cast<std::int64_t>(prediction->tokens_per_s.value)),
               range(c.hours, 1.0 / 24, 2), format_whole(static_cast<std::int64_t>(c.gpu_hours.value)),
               c.usd.value > 0 ? range(c.usd, 1, 0) : "-",
               format_whole(static_cast<std::int64_t>(c.energy_kwh.value)),
               c.electricity_usd.value > 0 ? format_fixed(c.electricity_usd.value, 0) : "-",
               format_percent(per_gpu / first_per_gpu)});
    list.append(json_object({{"nodes", json(*count)},
                             {"gpus", json(static_cast<std::int64_t>(prediction->gpus))},
                             {"step_time_ms", to_json(prediction->step_time_ms)},
                             {"tokens_per_s", json(prediction->tokens_per_s.value)},
                             {"hours", to_json(c.hours)},
                             {"gpu_hours", to_json(c.gpu_hours)},
                             {"usd", to_json(c.usd)},
                             {"energy_kwh", to_json(c.energy_kwh)},
                             {"electricity_usd", to_json(c.electricity_usd)}}));
  }
  const std::string text = fmt::format("{}: {} tokens, 90 % intervals in parentheses\n\n", bold(base->name),
                                       format_count(base->cost.tokens)) +
                           table.to_text() + warnings;
  return write_output(o.output, text, json_object({{"points", std::move(list)}}), table.to_csv());
}

}  // namespace

void add_cost(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "cost",
      "Time, money and energy of training on a number of tokens, over numbers of nodes.\n\n"
      "Examples:\n  foretrain cost scenarios/multi_node_2x8.json --tokens 300e9 --over-nodes 2,4,8,16\n"
      "  foretrain cost scenarios/multi_node_2x8.json --price \"1.20 USD/h\" --electricity \"0.20 "
      "USD/kWh\"\n");
  auto options = std::make_shared<Options>();
  add_scenario_options(*verb, options->scenario);
  verb->add_option("--tokens", options->tokens, "tokens to train on, such as 300e9")->type_name("N");
  verb->add_option("--price", options->price, "price of a GPU, such as \"1.50 USD/h\"")->type_name("PRICE");
  verb->add_option("--electricity", options->electricity, "price of energy, such as \"0.15 USD/kWh\"")
      ->type_name("PRICE");
  verb->add_option("--over-nodes", options->nodes, "numbers of nodes; dp grows with them")
      ->type_name("N1,N2,...");
  add_output_options(*verb, options->output);
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace foretrain
