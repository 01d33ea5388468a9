// foretrain validate: predictions against measurements: a table of runs, of kernels or of collectives.
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "calibrate/cases/validate_cases.h"
#include "calibrate/collectives/validate.h"
#include "calibrate/kernels/validate.h"
#include "cli/case_output.h"
#include "cli/output.h"
#include "cli/scenario_options.h"
#include "cli/verbs.h"
#include "model/json/parse.h"
#include "model/scenario/profile_file.h"

namespace foretrain {
namespace {

struct Options {
  std::optional<std::string> cases, kernels, collectives, base, profile;
  std::vector<std::string> set;
  bool no_leave_one_out = false;
  OutputOptions output;
};

int validate_table(const Options& o) {
  Overrides overrides;
  for (const std::string& text : o.set) {
    auto assignment = split_assignment(text, "--set");
    if (!assignment) return report(assignment.error());
    overrides.push_back(std::move(*assignment));
  }
  auto table = read_case_table(*o.cases, o.base.value_or(""), overrides);
  if (!table) return report(table.error());
  Profile profile = table->profile;
  if (o.profile) {
    auto loaded = read_profile(*o.profile);
    if (!loaded) return report(loaded.error());
    profile = std::move(*loaded);
  }
  auto cases = PreparedCases::create(table->cases);
  if (!cases) return report(cases.error());
  Progress progress("leave-one-out refits", cases->size());
  std::mutex mutex;
  ValidateOptions options;
  options.leave_one_out = !o.no_leave_one_out;
  options.progress = [&] {
    const std::lock_guard lock(mutex);
    progress.step();
  };
  auto validation = validate_cases(*cases, profile, options);
  if (!validation) return report(validation.error());
  return write_output(o.output, to_text(*validation), to_json(*validation), to_csv(*validation));
}

int run(const Options& o) {
  const int given = (o.cases ? 1 : 0) + (o.kernels ? 1 : 0) + (o.collectives ? 1 : 0);
  if (given != 1) {
    return report({Error{ErrorCode::usage,
                         {},
                         "validate: expected one of a case table, --kernels and --collectives",
                         "write, for example, foretrain validate scenarios/a30_pcie/cases.csv"}});
  }
  if (o.kernels) {
    if (on_terminal())
      print_note("fitting the kernel model in 5 folds per GPU; half a minute for 2,000 rows\n");
    auto result = validate_kernels(*o.kernels);
    return result ? write_output(o.output, to_text(*result), to_json(*result), "") : report(result.error());
  }
  if (o.collectives) {
    auto result = validate_collectives(*o.collectives);
    if (!result) return report(result.error());
    auto document = parse_json(to_json_text(*result), "report");
    return document ? write_output(o.output, to_text(*result), *document, "") : report(document.error());
  }
  return validate_table(o);
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "validate",
      "Holds predictions against measurements and says how far apart they are, in and out of sample.\n\n"
      "Examples:\n  foretrain validate scenarios/a30_pcie/cases.csv\n"
      "  foretrain validate scenarios/a30_pcie/cases.csv --json report.json --csv errors.csv\n"
      "  foretrain validate --kernels kernels.csv\n  foretrain validate --collectives sweeps.csv\n");
  auto options = std::make_shared<Options>();
  verb->add_option("cases", options->cases, "case table (CSV), a measured run per row")->type_name("CSV");
  verb->add_option("--kernels", options->kernels,
                   "table of matmul and attention times: 5-fold held-out errors")
      ->type_name("CSV");
  verb->add_option("--collectives", options->collectives,
                   "table of nccl-tests sweeps: three fitted parameters per sweep")
      ->type_name("CSV");
  verb->add_option("--base", options->base, "base scenario instead of base.json beside the table")
      ->type_name("FILE");
  verb->add_option("--profile", options->profile, "profile instead of the base scenario's")
      ->type_name("FILE");
  verb->add_option("--set", options->set, "override a field in every case")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  verb->add_flag("--no-leave-one-out", options->no_leave_one_out, "skip the refits");
  add_output_options(*verb, options->output);
  verb->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace foretrain
