// foretrain check: reads files and says everything that is wrong with them.
#include <memory>

#include <fmt/format.h>

#include "cli/output.h"
#include "cli/scenario_options.h"
#include "cli/verbs.h"
#include "model/program/step_program.h"

namespace foretrain {
namespace {

struct Options {
  std::vector<std::string> files;
  ScenarioOptions scenario;
  OutputOptions output;
};

int check_files(Options& options) {
  std::string text;
  Errors all;
  JsonValue files = JsonValue::make_array();
  for (const std::string& file : options.files) {
    options.scenario.file = file;
    Errors errors;
    auto scenario = options.scenario.read();
    std::string what;
    if (!scenario) {
      errors = std::move(scenario.error());
    } else if (auto program = build_step_program(scenario->model, scenario->training, scenario->parallel)) {
      errors = check(*program);
      what = fmt::format("{} on {} of {} GPUs of {}", describe(scenario->parallel),
                         scenario->parallel.world(), scenario->cluster.gpu_count(), scenario->cluster.name);
    } else {
      errors = std::move(program.error());
    }
    if (errors.empty()) text += fmt::format("{}: fine ({}, {})\n", file, scenario->model.name, what);
    JsonValue messages = JsonValue::make_array();
    for (const Error& error : errors) {
      messages.append(json_object({{"file", json(error.where.file)},
                                   {"line", json(static_cast<std::int64_t>(error.where.line))},
                                   {"column", json(static_cast<std::int64_t>(error.where.column))},
                                   {"path", json(error.where.path)},
                                   {"message", json(error.message)},
                                   {"hint", json(error.hint)}}));
    }
    files.append(json_object({{"file", json(file)}, {"errors", messages}}));
    all.insert(all.end(), errors.begin(), errors.end());
  }
  const int written = write_output(options.output, text, json_object({{"files", files}}), "");
  return all.empty() ? written : report(all);
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "check",
      "Reads scenarios and says everything that is wrong with them, with file, line and what to write.\n\n"
      "Examples:\n  foretrain check scenarios/*.json\n  foretrain check scenarios/ddp.json --dp 3\n");
  auto options = std::make_shared<Options>();
  verb->add_option("files", options->files, "scenario files")->required()->type_name("FILE...");
  add_scenario_options(*verb, options->scenario, false);
  add_output_options(*verb, options->output, false);
  verb->callback([options, &action] { action = [options] { return check_files(*options); }; });
}

}  // namespace foretrain
