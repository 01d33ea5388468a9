#include "cli/app.h"

#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/output.h"
#include "cli/verbs.h"
#include "model/base/text.h"

namespace foretrain {
namespace {

constexpr const char* kDescription =
    "Predicts the time, memory and cost of a distributed training step.\n\n"
    "Examples:\n"
    "  foretrain predict scenarios/a30_pcie/base.json --dp 4\n"
    "  foretrain compare scenarios/ddp.json --what-if cluster.preset=4xa30_nvlink\n"
    "  foretrain plan scenarios/qwen2.5_7b_2x4.json\n"
    "  foretrain validate scenarios/a30_pcie/cases.csv\n"
    "  foretrain list clusters\n";

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

int usage_error(const std::string& message, const std::string& hint) {
  return report({Error{ErrorCode::usage, {}, message, hint}});
}

// The subcommand that was named, or the app itself.
const CLI::App& active(const CLI::App& app) {
  const auto verbs = app.get_subcommands();
  return verbs.empty() ? app : *verbs.front();
}

int parse_failed(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& verb = active(app);
  if (error.get_exit_code() == 0) return app.exit(error) == 0 ? 0 : 2;
  const std::string help = fmt::format("see `foretrain {}{}--help`", &verb == &app ? "" : verb.get_name(),
                                       &verb == &app ? "" : " ");
  const std::vector<std::string> extras = verb.remaining(true);
  if (!extras.empty() && (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)) {
    const std::string& word = extras.front();
    const std::string name = word.substr(0, word.find('='));
    const bool flag = word.starts_with("-");
    const auto guess = nearest(name, flag ? flag_names(verb) : verb_names(app));
    return usage_error(fmt::format("{}: {} {}", &verb == &app ? "foretrain" : verb.get_name(),
                                   in_quotes(word), flag ? "is no option" : "was not expected"),
                       guess ? fmt::format("did you mean {}?", *guess) : help);
  }
  return usage_error(fmt::format("{}: {}", &verb == &app ? "foretrain" : verb.get_name(), error.what()),
                     help);
}

int not_here(const std::string& verb) {
  return usage_error(fmt::format("{}: this version of foretrain predicts; it has no \"{}\" yet", verb, verb),
                     "`foretrain --help` lists what it does");
}

int run(int argc, const char* const* argv) {
  CLI::App app(kDescription, "foretrain");
  app.set_version_flag("--version", "foretrain 0.1.0");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  Action action;
  add_predict(app, action);
  add_compare(app, action);
  add_sweep(app, action);
  add_plan(app, action);
  add_cost(app, action);
  add_validate(app, action);
  add_calibrate(app, action);
  add_diagnose(app, action);
  add_trace(app, action);
  add_check(app, action);
  add_list(app, action);
  if (argc >= 2 && argv[1][0] != '-') {
    const std::string word = argv[1];
    const std::vector<std::string> names = verb_names(app);
    if (word == "run" || word == "bench" || word == "view") return not_here(word);
    if (std::find(names.begin(), names.end(), word) == names.end()) {
      const auto guess = nearest(word, names);
      return usage_error(
          fmt::format("{} is no verb of foretrain", in_quotes(word)),
          guess ? fmt::format("did you mean {}?", *guess) : "`foretrain --help` lists the verbs");
    }
  }
  if (argc < 2 || argv[1][0] == '-') {  // the overview shows a line per verb, its own help shows examples
    for (CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
      const std::string whole = verb->get_description();
      verb->description(whole.substr(0, whole.find('\n')));
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return parse_failed(app, error);
  }
  return action ? action() : 2;
}

}  // namespace

int run_app(int argc, const char* const* argv) {
  std::signal(SIGPIPE, SIG_DFL);  // `foretrain list models | head` ends quietly
  try {
    const int code = run(argc, argv);
    if (std::fflush(stdout) != 0) {
      print_note("cannot write to stdout\n");
      return 3;
    }
    return code;
  } catch (const std::exception& error) {
    print_note(fmt::format(
        "internal error: {}\nThis is a fault of foretrain, not of your input; please report it with "
        "the command and its files.\n",
        error.what()));
    return 70;
  }
}

}  // namespace foretrain
