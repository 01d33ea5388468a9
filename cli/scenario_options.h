// The options of every verb that reads a scenario: the file, --set path=value, and the short forms of the
// dimensions people change most.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "model/scenario/scenario.h"

namespace foretrain {

struct ScenarioOptions {
  std::string file;
  std::vector<std::string> set;
  std::optional<std::string> dp, fsdp, tp, pp, micro_batch_size, micro_batches, global_batch_size, precision,
      nodes, profile;

  // --set and the short forms, in the order: short forms, then --set. Errors: "path=value" without "=".
  Expected<Overrides> overrides() const;
  // Reads the scenario with the overrides and `more` laid over it.
  Expected<Scenario> read(const Overrides& more = {}) const;
};

void add_scenario_options(CLI::App& verb, ScenarioOptions& options, bool positional = true);

// "path=value" at its first "=". Errors: no "=", empty path.
Expected<std::pair<std::string, std::string>> split_assignment(const std::string& text,
                                                               const std::string& option);

}  // namespace foretrain
