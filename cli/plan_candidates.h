// The strategies that `foretrain plan` tries for one model, cluster and global batch.
#pragma once

#include <string>
#include <vector>

#include "model/scenario/scenario.h"
#include "sim/report/report.h"

namespace foretrain {

struct Candidate {
  ParallelPlan plan;
  TrainingSpec training;
};

// Every combination of tp (a divisor of a machine's GPUs), pp, and the rest as DDP, ZeRO-1, ZeRO-2 or FSDP
// per block, with every micro-batch size of a power of two that divides the global batch, every schedule that
// the pipeline allows and without, with selective and with full recomputation, that check() accepts. Ordered.
std::vector<Candidate> enumerate_candidates(const Scenario& scenario, std::int32_t gpus);

// "Llama-style" name of a candidate: its plan, micro-batches and recomputation.
std::string describe(const Candidate& candidate);

// Why `loser` is behind `winner`, from the two simulations.
std::string reason_behind(const Prediction& winner, const Prediction& loser);
std::string reason_not_fitting(const Prediction& prediction);

}  // namespace foretrain
