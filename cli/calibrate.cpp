// foretrain calibrate: fits named profile parameters to a table of measured runs and writes the profile.
#include <memory>

#include <fmt/format.h>

#include "calibrate/cases/fit_cases.h"
#include "cli/case_output.h"
#include "cli/output.h"
#include "cli/scenario_options.h"
#include "cli/verbs.h"
#include "model/base/file.h"
#include "model/base/text.h"
#include "model/json/write.h"
#include "model/scenario/profile_file.h"

namespace foretrain {
namespace {

struct Options {
  std::string cases;
  std::optional<std::string> base, output, profile, fit;
  int starts = 3;
  OutputOptions out;
};

// The named parameters; without --fit those that the profile marks as fitted.
Expected<std::vector<ParameterId>> parameters_to_fit(const Options& o, const Profile& profile) {
  if (!o.fit) {
    std::vector<ParameterId> ids = fitted_parameters(profile);
    if (ids.empty()) {
      return fail(
          ErrorCode::usage, "calibrate: the profile marks no parameter as fitted",
          "name them: --fit host_time_per_op_us,memory_efficiency (`foretrain list parameters` shows all)");
    }
    return ids;
  }
  std::vector<ParameterId> ids;
  std::vector<std::string_view> names;
  for (const ParameterSpec& spec : profile_parameters()) names.push_back(spec.name);
  for (const std::string_view name : split(*o.fit, ',')) {
    const ParameterSpec* spec = find_parameter(trim(name));
    if (spec == nullptr) {
      return fail(ErrorCode::usage,
                  fmt::format("calibrate: --fit: {} is no profile parameter", in_quotes(name)),
                  did_you_mean(name, names, "parameters"));
    }
    ids.push_back(spec->id);
  }
  return ids;
}

int run(const Options& o) {
  auto table = read_case_table(o.cases, o.base.value_or(""));
  if (!table) return report(table.error());
  Profile start = table->profile;
  if (o.profile) {
    auto loaded = read_profile(*o.profile);
    if (!loaded) return report(loaded.error());
    start = std::move(*loaded);
  }
  auto ids = parameters_to_fit(o, start);
  if (!ids) return report(ids.error());
  auto cases = PreparedCases::create(table->cases);
  if (!cases) return report(cases.error());
  for (const ParameterSpec& spec : profile_parameters()) start.at(spec.id).fitted = false;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < cases->size(); ++i) rows.push_back(i);
  CaseFitOptions options;
  options.parameters = *ids;
  options.starts = o.starts;
  auto fit = fit_cases(*cases, rows, start, options);
  if (!fit) return report(fit.error());
  for (const ParameterId id : *ids) fit->profile.at(id).provenance += fmt::format(" of {}", o.cases);
  ValidateOptions validate_options;
  validate_options.leave_one_out = false;
  auto validation = validate_cases(*cases, fit->profile, validate_options);
  if (!validation) return report(validation.error());
  std::string text = to_text(*validation);
  const auto list = [&](const char* what, const std::vector<ParameterId>& which) {
    for (const ParameterId id : which) {
      text += fmt::format("note: {} {}\n", profile_parameters()[static_cast<std::size_t>(id)].name, what);
    }
  };
  list("ended at its bound", fit->at_bound);
  list("is not determined by these cases", fit->not_identified);
  if (fit->condition > 1e4) {
    text += fmt::format("note: some combination of parameters is hardly determined (condition {:.0f})\n",
                        fit->condition);
  }
  if (o.output) {
    if (auto written = write_file_atomic(*o.output, to_text(to_json(fit->profile))); !written)
      return report(written.error());
    text += fmt::format("\nprofile written to {}\n", *o.output);
  }
  JsonValue out = to_json(*validation);
  out.set("profile", to_json(fit->profile));
  return write_output(o.out, text, out, to_csv(*validation));
}

}  // namespace

void add_calibrate(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "calibrate",
      "Fits profile parameters to measured runs; says how sure it is of each.\n\n"
      "Examples:\n  foretrain calibrate scenarios/a30_pcie/cases.csv --output profile.json\n"
      "  foretrain calibrate scenarios/a30_pcie/cases.csv --fit memory_efficiency,host_time_per_op_us\n");
  auto options = std::make_shared<Options>();
  verb->add_option("cases", options->cases, "case table (CSV)")->required()->type_name("CSV");
  verb->add_option("--fit", options->fit, "parameters to fit; without it those the profile marks as fitted")
      ->type_name("NAME,NAME,...");
  verb->add_option("--base", options->base, "base scenario instead of base.json beside the table")
      ->type_name("FILE");
  verb->add_option("--profile", options->profile, "start from this profile")->type_name("FILE");
  verb->add_option("--output,-o", options->output, "write the profile here")->type_name("FILE");
  verb->add_option("--starts", options->starts, "starting points of the search (default 3)")
      ->check(CLI::Range(1, 100));
  add_output_options(*verb, options->out);
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace foretrain
