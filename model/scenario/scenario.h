// A scenario: everything a prediction or a run needs, read from one strict JSON file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/arch/transformer.h"
#include "model/base/error.h"
#include "model/hardware/cluster.h"
#include "model/hardware/profile.h"
#include "model/plan/parallel_plan.h"
#include "model/plan/training.h"

namespace foretrain {

struct CostSpec {
  double tokens = 0;                  // training target; 0: none
  double price_per_gpu_hour_usd = 0;  // overrides the cluster's
  double electricity_usd_per_kwh = 0;
};

// What the real runtime needs besides; kept here so that one file predicts and runs.
struct RunSpec {
  std::int64_t steps = 0;
  std::int64_t seed = 0;
  std::string data;  // path, or "synthetic"
  std::int64_t checkpoint_every = 0;
  std::string output;
  double learning_rate = 3e-4;
};

struct Scenario {
  std::string name;
  std::string file;
  TransformerConfig model;
  TrainingSpec training;
  ParallelPlan parallel;
  Cluster cluster;
  Profile profile;
  CostSpec cost;
  RunSpec run;
};

// `overrides`: (dotted path, text) pairs as --set and --what-if give them, applied in order. Relative paths
// inside the file (profile, model.import, data, "base": another scenario to inherit from) are relative to the
// file.
using Overrides = std::vector<std::pair<std::string, std::string>>;
Expected<Scenario> read_scenario(const std::string& file, const Overrides& overrides = {});
Expected<Scenario> parse_scenario(const std::string& text, const std::string& file,
                                  const Overrides& overrides = {});
// Every contradiction between the sections (world size against GPUs, sequence against positions, ...).
Errors check(const Scenario& scenario);
// All dotted paths that a scenario may contain, with type and one sentence: for help, docs and did-you-mean.
struct ScenarioField {
  std::string path, type, sentence;
};
const std::vector<ScenarioField>& scenario_fields();

}  // namespace foretrain
