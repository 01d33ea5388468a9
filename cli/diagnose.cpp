// foretrain diagnose: what is odd in a table of measured runs, with the evidence.
#include "calibrate/diagnose/diagnose.h"

#include <memory>

#include "cli/case_output.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace foretrain {

void add_diagnose(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "diagnose",
      "Looks for what is odd in a table of measured runs: wrong units, faulty steps, slow-downs.\n\n"
      "Examples:\n  foretrain diagnose scenarios/a30_pcie/cases.csv\n");
  struct Options {
    std::string cases;
    std::string base;
    OutputOptions output;
  };
  auto options = std::make_shared<Options>();
  verb->add_option("cases", options->cases, "case table (CSV)")->required()->type_name("CSV");
  verb->add_option("--base", options->base, "base scenario instead of base.json beside the table")
      ->type_name("FILE");
  add_output_options(*verb, options->output, false);
  verb->callback([options, &action] {
    action = [options] {
      auto table = read_case_table(options->cases, options->base);
      if (!table) return report(table.error());
      auto diagnosis = diagnose(*table);
      if (!diagnosis) return report(diagnosis.error());
      return write_output(options->output, to_text(*diagnosis), to_json(*diagnosis), "");
    };
  });
}

}  // namespace foretrain
