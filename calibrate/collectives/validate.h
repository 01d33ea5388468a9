// Validates the collective cost model on a table of sweeps: per sweep a fit of three parameters, its errors,
// the errors on sizes that were held out, and the same overall. Pure functions, safe from any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibrate/collectives/fit.h"
#include "calibrate/collectives/sweeps.h"
#include "calibrate/fit/least_squares.h"
#include "model/base/error.h"

namespace foretrain {

struct CollectivePrediction {
  std::int64_t bytes = 0;
  double measured_us = 0;
  double predicted_us = 0;
  double held_out_us = 0;  // by the fit that did not see this size; 0 when there was none
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
};

struct CollectiveSweepResult {
  CollectiveSweep sweep;
  CollectiveFit fit;
  ErrorSummary errors;
  std::optional<ErrorSummary> held_out;
  bool counted = false;  // in the overall errors: at least kCountedSizes sizes
  std::vector<CollectivePrediction> predictions;
};

constexpr std::size_t kCountedSizes = 8;
constexpr std::size_t kFittedSizes = 4;  // fewer sizes than this cannot test three parameters

struct CollectiveReport {
  std::vector<CollectiveSweepResult> sweeps;  // those with at least kFittedSizes sizes, in table order
  std::size_t sweeps_in_table = 0;
  std::size_t sweeps_counted = 0;
  std::size_t machines_counted = 0;
  ErrorSummary errors;    // over all points of the counted sweeps
  ErrorSummary held_out;  // every fourth size left out in turn
  // The same points when all collectives of one machine share its three parameters (a machine whose traffic
  // is staged through host memory gives each direction of two-way traffic kTwoWayShare of one-way traffic).
  ErrorSummary shared;
};

// Per-direction rate of two-way traffic over one-way traffic through host memory: both directions of every
// GPU meet in one memory system. Half at best; measured 0.36 on the one machine of data/nccl_sweeps.csv that
// ran both (2 x RTX 2080 Ti without peer to peer, NCCL all_reduce against broadcast).
constexpr double kTwoWayShare = 0.36;

// Errors are the fit's own.
Expected<CollectiveReport> validate_collectives(std::span<const CollectiveSweep> sweeps);
// Reads the table first; a table without a sweep of kFittedSizes sizes is an error.
Expected<CollectiveReport> validate_collectives(const std::string& path);

// Tables for people: a line per sweep and the summary.
std::string to_text(const CollectiveReport& report);
// {"collectives":[{gpu, op, n_gpus, nodes, n, mape_pct, median_pct, p90_pct, held_out, parameters}],
//  "summary":{...}}; units in the keys.
std::string to_json_text(const CollectiveReport& report);

}  // namespace foretrain
