// One function per verb: adds its subcommand to the app. The action runs after parsing and returns the exit
// code.
#pragma once

#include <functional>

#include <CLI/App.hpp>

namespace foretrain {

using Action = std::function<int()>;

void add_predict(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_sweep(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_cost(CLI::App& app, Action& action);
void add_validate(CLI::App& app, Action& action);
void add_calibrate(CLI::App& app, Action& action);
void add_diagnose(CLI::App& app, Action& action);
void add_trace(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_list(CLI::App& app, Action& action);

}  // namespace foretrain
