// What people ask of a simulation: step time, throughput, utilisation, memory, where the time goes and what
// it costs, with intervals from the profile's uncertainty. Pure functions, safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/arch/transformer.h"
#include "model/base/error.h"
#include "model/hardware/cluster.h"
#include "model/hardware/profile.h"
#include "model/plan/parallel_plan.h"
#include "model/plan/training.h"
#include "model/program/step_program.h"
#include "sim/engine/simulate.h"

namespace foretrain {

// A prediction and its 90 % interval. Without intervals low == value == high.
struct Interval {
  double value = 0;
  double low = 0;
  double high = 0;
};

struct PredictOptions {
  SimulationOptions simulation;
  bool intervals = true;  // two dozen more simulations
};

struct Prediction {
  Interval step_time_ms;
  Interval tokens_per_s;        // of the whole job
  Interval mfu;                 // 6 N tokens / (step time x GPUs x peak)
  Interval mfu_with_attention;  // (6 N + 12 L H S) tokens, as PaLM counts
  Interval hfu;                 // FLOPs that the kernels do, recomputation included, over the same peak
  Interval peak_memory_gib;     // allocated, of the fullest rank
  Interval reserved_memory_gib;
  std::string peak_name;  // "fp16 tensor cores of NVIDIA A30: 165.0 TFLOPS"
  FlopRate peak;          // per GPU
  std::int32_t gpus = 0;
  double tokens_per_step = 0;
  std::vector<RankBreakdown> breakdown;  // per rank class (pipeline stage)
  std::vector<MemoryReport> memory;      // per rank class
  std::int32_t fullest_class = 0;        // index into memory
  RankBreakdown mean_breakdown;          // over all ranks
  double bubble_fraction = 0;            // of all GPUs' time
  Time exposed_communication;            // mean over ranks
  Time collective_lower_bound;
  Bytes gpu_memory;
  bool fits = true;  // the reserved peak is at most the GPU's memory
  std::vector<std::string> warnings;
  std::uint64_t event_hash = 0;
  std::uint64_t events = 0;
  Timeline timeline;  // when asked for
  StepGraph graph;    // when asked for
};

// Lowers, simulates, reports. Errors: those of build_step_program, Simulator::create and Simulator::run.
Expected<Prediction> predict(const TransformerConfig& model, const TrainingSpec& training,
                             const ParallelPlan& plan, const Cluster& cluster, const Profile& profile,
                             const PredictOptions& options = {});
// The same for a program that is prepared already.
Expected<Prediction> predict(const StepProgram& program, const Simulator& simulator, const Cluster& cluster,
                             const Profile& profile, const PredictOptions& options = {});

// The report of one result, without intervals.
Prediction make_report(const StepProgram& program, const Cluster& cluster, const Profile& profile,
                       SimulationResult result);

// The peak that MFU and HFU are relative to: the datasheet's dense rate of the cores the precision uses.
FlopRate peak_rate(const GpuSpec& gpu, Precision precision);
// FLOPs of one step over all ranks as the op lists do them.
Flops hardware_flops(const StepProgram& program);
// Tokens of one step of the whole job: micro_batch_size x micro_batches x sequence x dp x fsdp.
double tokens_per_step(const StepProgram& program);

// --- Critical path
// -------------------------------------------------------------------------------------------

struct CriticalStep {
  std::int32_t rank_class = -1;   // -1: between classes
  std::int32_t instruction = -1;  // in the class
  std::string label;              // "B3.mb1", "Send F mb0 -> stage 1", "step"
  CauseKind kind = CauseKind::order;
  Time start, end;
};

struct CriticalPath {
  Time length;  // equals the step time
  Time compute, communication, host;
  std::vector<CriticalStep> steps;  // in time order; consecutive steps of one kind and instruction are merged
};

// Longest path through the graph of a simulation that was run with SimulationOptions::graph. Empty graph:
// empty path.
CriticalPath critical_path(const StepProgram& program, const StepGraph& graph);

// --- Sensitivity
// ---------------------------------------------------------------------------------------------

struct SensitivityRow {
  std::string name;  // "matmul rate", "PCIe bandwidth", "micro-batches"
  double gain_percent =
      0;  // of the step time (per token for micro-batches) won by twice of it, or half a latency
  Interval step_time_ms;  // what the step would take
};

// Every knob that exists in this scenario, best first.
Expected<std::vector<SensitivityRow>> sensitivity(const TransformerConfig& model,
                                                  const TrainingSpec& training, const ParallelPlan& plan,
                                                  const Cluster& cluster, const Profile& profile,
                                                  Fidelity fidelity = Fidelity::fluid);

// --- Cost
// ----------------------------------------------------------------------------------------------------

struct CostInputs {
  double tokens = 0;                  // to be trained on
  double price_per_gpu_hour_usd = 0;  // 0: the cluster's, or the GPU's
  double electricity_usd_per_kwh = 0;
};

struct CostEstimate {
  double steps = 0;
  Interval hours;
  Interval gpu_hours;
  Interval usd;         // 0 when no price is known
  Interval energy_kwh;  // GPUs only, times the cluster's power usage effectiveness
  Interval electricity_usd;
};

// A GPU draws its board limit while its device works and kWaitingPowerShare of it while it waits.
constexpr double kWaitingPowerShare = 0.4;
CostEstimate estimate_cost(const Prediction& prediction, const Cluster& cluster, const CostInputs& inputs);

}  // namespace foretrain
