// foretrain sweep: every combination of listed values, in parallel, printed in their order.
#include <atomic>
#include <memory>

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include "cli/output.h"
#include "cli/prediction_output.h"
#include "cli/scenario_options.h"
#include "cli/verbs.h"
#include "model/base/format.h"
#include "model/base/text.h"

namespace foretrain {
namespace {

struct Options {
  ScenarioOptions scenario;
  std::vector<std::string> over;
  OutputOptions output;
};

struct Axis {
  std::string path;
  std::vector<std::string> values;
};

Expected<std::vector<Axis>> parse_axes(const std::vector<std::string>& texts) {
  std::vector<Axis> axes;
  for (const std::string& text : texts) {
    auto assignment = split_assignment(text, "--over");
    if (!assignment) return fail(std::move(assignment.error()));
    Axis axis{assignment->first, {}};
    for (const std::string_view value : split(assignment->second, ',')) axis.values.emplace_back(trim(value));
    axes.push_back(std::move(axis));
  }
  return axes;
}

int run(const Options& o) {
  auto axes = parse_axes(o.over);
  if (!axes) return report(axes.error());
  std::size_t points = 1;
  for (const Axis& axis : *axes) points *= axis.values.size();
  constexpr std::size_t kMost = 100000;
  if (points > kMost) {
    return report({Error{ErrorCode::usage,
                         {},
                         fmt::format("sweep: {} combinations; at most {} are run at once", points, kMost),
                         "list fewer values"}});
  }
  struct Point {
    Overrides overrides;
    Errors errors;
    std::optional<Prediction> prediction;
    std::optional<Scenario> scenario;
  };
  std::vector<Point> results(points);
  for (std::size_t i = 0; i < points; ++i) {
    std::size_t rest = i;
    for (std::size_t a = axes->size(); a-- > 0;) {
      const Axis& axis = (*axes)[a];
      results[i].overrides.insert(results[i].overrides.begin(),
                                  {axis.path, axis.values[rest % axis.values.size()]});
      rest /= axis.values.size();
    }
  }
  tbb::parallel_for(std::size_t{0}, points, [&](std::size_t i) {
    Point& point = results[i];
    auto scenario = o.scenario.read(point.overrides);
    if (!scenario) {
      point.errors = std::move(scenario.error());
      return;
    }
    PredictOptions options;
    options.intervals = false;
    auto prediction = predict(*scenario, options);
    if (!prediction) {
      point.errors = std::move(prediction.error());
      return;
    }
    point.prediction = std::move(*prediction);
    point.scenario = std::move(*scenario);
  });
  std::vector<std::string> header;
  for (const Axis& axis : *axes) header.push_back("<" + axis.path);
  for (const char* name :
       {"step time (ms)", "tokens/s", "MFU", "peak memory (GiB)", "bubble", "exposed comm. (ms)"}) {
    header.emplace_back(name);
  }
  header.emplace_back("<result");
  TextTable table(header);
  JsonValue list = JsonValue::make_array();
  std::size_t failed = 0;
  for (const Point& point : results) {
    std::vector<std::string> row;
    JsonValue settings = JsonValue::make_object();
    for (const auto& [path, value] : point.overrides) {
      row.push_back(value);
      settings.set(path, json(value));
    }
    JsonValue one = json_object({{"settings", std::move(settings)}});
    if (point.prediction) {
      const Prediction& p = *point.prediction;
      row.insert(row.end(),
                 {format_fixed(p.step_time_ms.value, 2),
                  format_whole(static_cast<std::int64_t>(p.tokens_per_s.value)), format_percent(p.mfu.value),
                  format_fixed(p.peak_memory_gib.value, 2), format_percent(p.bubble_fraction),
                  format_fixed(p.exposed_communication.ms(), 2), p.fits ? "fits" : "does not fit"});
      one.set("prediction", to_json(*point.scenario, p));
    } else {
      ++failed;
      row.insert(row.end(), {"-", "-", "-", "-", "-", "-",
                             point.errors.front().where.path + " " + point.errors.front().message});
      one.set("error", json(to_text(point.errors)));
    }
    table.row(std::move(row));
    list.append(std::move(one));
  }
  std::vector<const Prediction*> predictions;
  for (const Point& point : results) {
    if (point.prediction) predictions.push_back(&*point.prediction);
  }
  const int code = write_output(o.output, table.to_text() + warnings_text(predictions),
                                json_object({{"points", std::move(list)}}), table.to_csv());
  if (code == 0 && failed == points) return report(results.front().errors);
  return code;
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "sweep",
      "Predicts every combination of listed values.\n\n"
      "Examples:\n  foretrain sweep scenarios/single_gpu.json --over training.micro_batch_size=1,2,4,8\n"
      "  foretrain sweep scenarios/a30_pcie/base.json --over parallel.dp=1,2,4 --over "
      "training.precision=fp32,fp16_amp --csv sweep.csv\n");
  auto options = std::make_shared<Options>();
  add_scenario_options(*verb, options->scenario);
  verb->add_option("--over", options->over, "a field and its values (repeatable)")
      ->required()
      ->type_name("PATH=V1,V2,...")
      ->allow_extra_args(false);
  add_output_options(*verb, options->output);
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace foretrain
