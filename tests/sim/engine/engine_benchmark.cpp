// The speed bars: the 18 cases of the reference table together, 64 ranks from plan to timeline, 16,384 ranks.
// Every benchmark starts from the plan: lowering, routes and costs are part of it.
#include <benchmark/benchmark.h>

#include <vector>

#include "sim/engine/simulate.h"

namespace foretrain {
namespace {

struct Case {
  ParallelPlan plan;
  Precision precision;
};

std::vector<Case> reference_cases() {
  std::vector<Case> cases;
  for (const Precision precision : {Precision::fp32, Precision::fp16_amp}) {
    cases.push_back({ParallelPlan{}, precision});
    for (const std::int32_t gpus : {2, 4}) {
      ParallelPlan ddp, fsdp, tp, pp;
      ddp.dp = gpus;
      fsdp.fsdp = gpus;
      fsdp.fsdp_options.unit = FsdpUnit::whole_model;
      tp.tp = gpus;
      tp.tp_kind = TensorParallelKind::column_gather;
      pp.pp = gpus;
      pp.schedule = PipelineSchedule::sequential;
      pp.pp_forward_only_ranks = true;
      for (const ParallelPlan& plan : {ddp, fsdp, tp, pp}) cases.push_back({plan, precision});
    }
  }
  return cases;
}

void reference_table(benchmark::State& state) {
  const TransformerConfig& model = *find_model("gpt_125m_reference");
  const Cluster cluster = build(*find_cluster("4xa30_pcie"));
  const Profile profile = default_profile();
  TrainingSpec training;
  training.micro_batch_size = 4;
  const std::vector<Case> cases = reference_cases();
  SimulationOptions options;
  options.memory = state.range(0) != 0;
  for (auto _ : state) {
    for (const Case& c : cases) {
      training.precision = c.precision;
      const auto program = build_step_program(model, training, c.plan);
      const auto simulator = Simulator::create(*program, cluster);
      const auto result = simulator->run(profile, options);
      benchmark::DoNotOptimize(result->step_time);
    }
  }
  state.counters["cases"] = static_cast<double>(cases.size());
}
BENCHMARK(reference_table)->ArgName("memory")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

// The same when programs are prepared already, as fits and what-ifs run them.
void reference_table_again(benchmark::State& state) {
  const TransformerConfig& model = *find_model("gpt_125m_reference");
  const Cluster cluster = build(*find_cluster("4xa30_pcie"));
  const Profile profile = default_profile();
  TrainingSpec training;
  training.micro_batch_size = 4;
  std::vector<Simulator> simulators;
  for (const Case& c : reference_cases()) {
    training.precision = c.precision;
    simulators.push_back(
        std::move(*Simulator::create(*build_step_program(model, training, c.plan), cluster)));
  }
  SimulationOptions options;
  options.memory = false;
  for (auto _ : state) {
    for (const Simulator& simulator : simulators) {
      benchmark::DoNotOptimize(simulator.run(profile, options)->step_time);
    }
  }
}
BENCHMARK(reference_table_again)->Unit(benchmark::kMillisecond);

void run_large(benchmark::State& state, const TransformerConfig& model, const TrainingSpec& training,
               const ParallelPlan& plan, const SimulationOptions& options) {
  std::uint64_t events = 0;
  std::size_t spans = 0;
  for (auto _ : state) {
    ClusterSpec spec = *find_cluster("8xa100_80_sxm");
    spec.nodes = plan.world() / 8;
    const Cluster cluster = build(spec);
    const auto program = build_step_program(model, training, plan);
    const auto simulator = Simulator::create(*program, cluster);
    const auto result = simulator->run(default_profile(), options);
    events = result->events;
    spans = result->timeline.spans.size();
  }
  state.counters["ranks"] = static_cast<double>(plan.world());
  state.counters["events"] = static_cast<double>(events);
  state.counters["spans"] = static_cast<double>(spans);
}

// 16 layers of hidden 4096 on DP4 x TP8 x PP2, 8 micro-batches, spans of every rank.
void ranks_64_to_timeline(benchmark::State& state) {
  TransformerConfig model = *find_model("llama2_7b");
  model.layers = 16;
  TrainingSpec training;
  training.sequence_length = 4096;
  training.micro_batches = 8;
  training.attention = AttentionKernel::flash;
  training.precision = Precision::bf16_amp;
  ParallelPlan plan;
  plan.dp = 4;
  plan.tp = 8;
  plan.pp = 2;
  SimulationOptions options;
  options.timeline = options.all_ranks = options.ops = true;
  run_large(state, model, training, plan, options);
}
BENCHMARK(ranks_64_to_timeline)->Unit(benchmark::kMillisecond);

// Llama-3 405B on DP128 x TP8 x PP16, 64 micro-batches, memory replayed.
void ranks_16384(benchmark::State& state) {
  TrainingSpec training;
  training.sequence_length = 4096;
  training.micro_batches = 64;
  training.attention = AttentionKernel::flash;
  training.precision = Precision::bf16_amp;
  ParallelPlan plan;
  plan.dp = 128;
  plan.tp = 8;
  plan.pp = 16;
  run_large(state, *find_model("llama3_405b"), training, plan, {});
}
BENCHMARK(ranks_16384)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace foretrain
