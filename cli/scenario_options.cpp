#include "cli/scenario_options.h"

#include <fmt/format.h>

#include "model/base/text.h"
#include "model/scenario/profile_file.h"

namespace foretrain {

void add_scenario_options(CLI::App& verb, ScenarioOptions& options, bool positional) {
  if (positional)
    verb.add_option("scenario", options.file, "scenario file (JSON)")->required()->type_name("FILE");
  verb.add_option("--set", options.set, "override a field: --set parallel.tp=4 (repeatable)")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  const auto shorthand = [&](const char* flag, std::optional<std::string>& into, const char* path) {
    verb.add_option(flag, into, fmt::format("short for --set {}=", path))->type_name("N");
  };
  shorthand("--dp", options.dp, "parallel.dp");
  shorthand("--fsdp", options.fsdp, "parallel.fsdp");
  shorthand("--tp,--tensor-model-parallel-size", options.tp, "parallel.tp");
  shorthand("--pp,--pipeline-model-parallel-size", options.pp, "parallel.pp");
  shorthand("--micro-batch-size", options.micro_batch_size, "training.micro_batch_size");
  shorthand("--micro-batches", options.micro_batches, "training.micro_batches");
  shorthand("--nodes", options.nodes, "cluster.nodes");
  verb.add_option("--precision", options.precision, "short for --set training.precision=")->type_name("NAME");
  verb.add_option("--profile", options.profile, "a calibrated profile instead of the scenario's")
      ->type_name("FILE");
}

Expected<std::pair<std::string, std::string>> split_assignment(const std::string& text,
                                                               const std::string& option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return fail(ErrorCode::usage, fmt::format("{} {}: expected PATH=VALUE", option, in_quotes(text)),
                fmt::format("write, for example, {} parallel.tp=4", option));
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Expected<Overrides> ScenarioOptions::overrides() const {
  Overrides list;
  const std::pair<const char*, const std::optional<std::string>*> shorthands[] = {
      {"parallel.dp", &dp},
      {"parallel.fsdp", &fsdp},
      {"parallel.tp", &tp},
      {"parallel.pp", &pp},
      {"training.micro_batch_size", &micro_batch_size},
      {"training.micro_batches", &micro_batches},
      {"training.precision", &precision},
      {"cluster.nodes", &nodes}};
  for (const auto& [path, value] : shorthands) {
    if (*value) list.emplace_back(path, **value);
  }
  for (const std::string& text : set) {
    auto assignment = split_assignment(text, "--set");
    if (!assignment) return fail(std::move(assignment.error()));
    list.push_back(std::move(*assignment));
  }
  return list;
}

Expected<Scenario> ScenarioOptions::read(const Overrides& more) const {
  auto list = overrides();
  if (!list) return fail(std::move(list.error()));
  list->insert(list->end(), more.begin(), more.end());
  auto scenario = read_scenario(file, *list);
  if (scenario && profile) {
    auto loaded = read_profile(*profile);
    if (!loaded) return fail(std::move(loaded.error()));
    scenario->profile = std::move(*loaded);
  }
  return scenario;
}

}  // namespace foretrain
