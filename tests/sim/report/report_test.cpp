#include "sim/report/report.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/arch/transformer.h"
#include "tests/sim/engine/hand_made.h"

namespace foretrain {
namespace {

TrainingSpec reference_training(Precision precision = Precision::fp32) {
  TrainingSpec training;
  training.micro_batch_size = 4;
  training.sequence_length = 512;
  training.precision = precision;
  return training;
}

const TransformerConfig& reference_model() { return *find_model("gpt_125m_reference"); }

Prediction predicted(const ParallelPlan& plan, const TrainingSpec& training = reference_training(),
                     const PredictOptions& options = {}) {
  auto p = predict(reference_model(), training, plan, build(*find_cluster("4xa30_pcie")), default_profile(),
                   options);
  EXPECT_TRUE(p.has_value()) << to_text(p.error());
  return std::move(*p);
}

TEST(Report, ThroughputIsThatOfTheWholeJob) {
  ParallelPlan ddp;
  ddp.dp = 4;
  const Prediction p = predicted(ddp);
  EXPECT_EQ(p.tokens_per_step, 4 * 4 * 512);
  EXPECT_NEAR(p.tokens_per_s.value, p.tokens_per_step / (p.step_time_ms.value * 1e-3), 1e-6);
  ParallelPlan tp;
  tp.tp = 4;
  EXPECT_EQ(predicted(tp).tokens_per_step, 4 * 512);
}

TEST(Report, MfuIs6NTokensOverThePeakOfAllGpus) {
  ParallelPlan ddp;
  ddp.dp = 2;
  const Prediction p = predicted(ddp);
  const double flops = 6.0 * static_cast<double>(parameter_count(reference_model())) * p.tokens_per_step;
  EXPECT_NEAR(p.mfu.value, flops / (p.step_time_ms.value * 1e-3 * 2 * 10.3e12), 1e-9);
  // 12 layers x hidden x sequence FLOPs a token for attention.
  const double attention = 12.0 * 12 * 768 * 512 * p.tokens_per_step;
  EXPECT_NEAR(p.mfu_with_attention.value / p.mfu.value, (flops + attention) / flops, 1e-9);
  EXPECT_NE(p.peak_name.find("10.3 TFLOPS"), std::string::npos);
}

TEST(Report, PublishedMfuOfTheReferenceFollowsFromItsThroughput) {
  // 6 x 125.2e6 x 8300 / 165e12 = 3.8 %: the A30's fp16 peak, as its authors used also for fp32.
  const double n = static_cast<double>(parameter_count(reference_model()));
  EXPECT_NEAR(6 * n * 8300 / peak_rate(*find_gpu("a30"), Precision::fp16_amp).per_s(), 0.038, 0.0005);
}

TEST(Report, HardwareFlopsExceedModelFlopsOnlyByWhatTheModelCountLeavesOut) {
  const Prediction p = predicted(ParallelPlan{});
  // Attention scores are computed in full, without regard to the mask; element-wise work is small.
  EXPECT_GT(p.hfu.value, p.mfu.value * 0.97);
  EXPECT_LT(p.hfu.value, p.mfu_with_attention.value * 1.03);
}

TEST(Report, RecomputationRaisesHfuButNotMfuPerTime) {
  TrainingSpec training = reference_training();
  const Prediction plain = predicted(ParallelPlan{}, training);
  training.recompute = Recompute::full;
  const Prediction full = predicted(ParallelPlan{}, training);
  EXPECT_NEAR(full.mfu.value * full.step_time_ms.value, plain.mfu.value * plain.step_time_ms.value, 1e-9);
  EXPECT_GT(full.hfu.value * full.step_time_ms.value, plain.hfu.value * plain.step_time_ms.value * 1.15);
  EXPECT_LT(full.peak_memory_gib.value, plain.peak_memory_gib.value);
}

TEST(Report, TensorParallelRanksShareTheSameHardwareFlops) {
  ParallelPlan tp;
  tp.tp = 4;
  tp.tp_kind = TensorParallelKind::megatron;
  const auto split = build_step_program(reference_model(), reference_training(), tp);
  const auto whole = build_step_program(reference_model(), reference_training(), ParallelPlan{});
  EXPECT_NEAR(hardware_flops(*split).count() / hardware_flops(*whole).count(), 1.0, 0.01);
}

TEST(Report, BubbleFractionIsTheMeanOverRanks) {
  ParallelPlan pp;
  pp.pp = 4;
  pp.schedule = PipelineSchedule::gpipe;
  TrainingSpec training = reference_training();
  training.micro_batches = 8;
  const Prediction p = predicted(pp, training);
  double sum = 0;
  for (const RankBreakdown& b : p.breakdown) sum += b.bubble.ms();
  EXPECT_NEAR(p.bubble_fraction, sum / 4 / p.step_time_ms.value, 1e-6);
}

TEST(Report, PlanThatNeedsMoreMemoryThanTheGpuHasDoesNotFit) {
  TrainingSpec training = reference_training();
  EXPECT_TRUE(predicted(ParallelPlan{}, training).fits);
  training.micro_batch_size = 64;
  const Prediction p = predicted(ParallelPlan{}, training);
  EXPECT_FALSE(p.fits);
  EXPECT_GT(p.peak_memory_gib.value, 24);
}

TEST(Report, FaultyPipelineStepIsFlagged) {
  ParallelPlan pp;
  pp.pp = 2;
  pp.schedule = PipelineSchedule::sequential;
  pp.pp_forward_only_ranks = true;
  EXPECT_FALSE(predicted(pp).warnings.empty());
}

// --- Intervals
// -----------------------------------------------------------------------------------------------

TEST(Intervals, OneParameterOfKnownEffectGivesItsKnownInterval) {
  // One op of 1 ms of traffic at full efficiency; the time is 1 ms / e with e = 0.5 and a standard error of
  // 0.01: 2 ms +- 1.645 x 2 ms x 0.01 / 0.5.
  hand_made::Program program;
  program.compute(0, 1'000'000'000);
  const Cluster cluster = hand_made::cluster(1);
  Profile profile = hand_made::plain_profile();
  profile.at(ParameterId::memory_efficiency).value = 0.5;
  profile.at(ParameterId::memory_efficiency).standard_error = 0.01;
  const auto simulator = Simulator::create(program.program, cluster);
  program.program.model = reference_model();
  const auto p = predict(program.program, *simulator, cluster, profile);
  ASSERT_TRUE(p.has_value());
  EXPECT_NEAR(p->step_time_ms.value, 2.0, 1e-9);
  EXPECT_NEAR(p->step_time_ms.high - 2.0, 1.645 * 0.04, 0.0002);
  EXPECT_NEAR(2.0 - p->step_time_ms.low, 1.645 * 0.04, 0.0002);
  EXPECT_NEAR(p->tokens_per_s.low, p->tokens_per_step / (p->step_time_ms.high * 1e-3), 1e-6);
}

TEST(Intervals, PerfectAnticorrelationOfEqualEffectsCancels) {
  // Device time a / e + b: overhead of the same absolute effect, correlated +1 (both raise) or -1.
  hand_made::Program program;
  program.compute(0, 1'000'000'000);
  const Cluster cluster = hand_made::cluster(1);
  Profile profile = hand_made::plain_profile();
  profile.at(ParameterId::kernel_overhead_us).value = 10;
  profile.at(ParameterId::kernel_overhead_us).standard_error = 1;  // 1 us of 1010
  profile.at(ParameterId::memory_efficiency).value = 0.8;
  profile.at(ParameterId::memory_efficiency).standard_error = 0.8 * 1.0 / 1250;  // 1 us as well
  profile.correlated = {ParameterId::kernel_overhead_us, ParameterId::memory_efficiency};
  const auto simulator = Simulator::create(program.program, cluster);
  program.program.model = reference_model();
  const auto width = [&](double correlation) {
    profile.correlation = {1, correlation, correlation, 1};
    const auto p = predict(program.program, *simulator, cluster, profile);
    return (p->step_time_ms.high - p->step_time_ms.low) * 1000 / 2 / 1.6448536;  // us, one standard deviation
  };
  EXPECT_NEAR(width(0), std::sqrt(2.0), 0.01);
  EXPECT_NEAR(width(1), 0.0, 0.05);  // more overhead goes with more bandwidth
  EXPECT_NEAR(width(-1), 2.0, 0.01);
}

TEST(Intervals, WithoutThemLowAndHighAreTheValue) {
  PredictOptions options;
  options.intervals = false;
  const Prediction p = predicted(ParallelPlan{}, reference_training(), options);
  EXPECT_EQ(p.step_time_ms.low, p.step_time_ms.value);
  EXPECT_EQ(p.step_time_ms.high, p.step_time_ms.value);
}

TEST(Intervals, ContainTheValueForEveryKindOfPlan) {
  for (const int kind : {0, 1, 2, 3}) {
    ParallelPlan plan;
    if (kind == 0) plan.dp = 4;
    if (kind == 1) plan.fsdp = 4;
    if (kind == 2) plan.tp = 4;
    if (kind == 3) plan.pp = 4;
    const Prediction p = predicted(plan, reference_training(Precision::fp16_amp));
    EXPECT_LT(p.step_time_ms.low, p.step_time_ms.value);
    EXPECT_GT(p.step_time_ms.high, p.step_time_ms.value);
    EXPECT_GT(p.step_time_ms.low, 0);
    EXPECT_LT(p.mfu.low, p.mfu.value);
    EXPECT_GT(p.mfu.high, p.mfu.value);
  }
}

// --- Critical path
// -------------------------------------------------------------------------------------------

RC_GTEST_PROP(CriticalPath, IsAsLongAsTheStepForEveryPlan, ()) {
  ParallelPlan plan;
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      plan.dp = 4;
      break;
    case 1:
      plan.fsdp = 2;
      break;
    case 2:
      plan.tp = 2;
      break;
    case 3:
      plan.pp = 4;
      plan.schedule = *rc::gen::element(PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b);
      break;
    default:
      plan.pp = 2;
      plan.dp = 2;
      break;
  }
  TrainingSpec training;
  training.sequence_length = 64;
  training.micro_batches = *rc::gen::inRange(1, 4);
  training.precision = *rc::gen::element(Precision::fp32, Precision::fp16_amp);
  Profile profile = default_profile();
  profile.at(ParameterId::host_time_per_op_us).value = *rc::gen::element(0.0, 2.0, 20.0);
  profile.at(ParameterId::communication_interference).value = *rc::gen::element(0.0, 0.4, 1.0);
  const auto program = build_step_program(*find_model("tiny"), training, plan);
  RC_PRE(program.has_value());
  const auto simulator = Simulator::create(*program, build(*find_cluster("4xa30_pcie")));
  SimulationOptions options;
  options.graph = true;
  const auto result = simulator->run(profile, options);
  const CriticalPath path = critical_path(*program, result->graph);
  RC_ASSERT(path.length == result->step_time);
  // The steps follow one another without gaps, and their kinds add up.
  Time at;
  for (const CriticalStep& step : path.steps) {
    RC_ASSERT(step.start == at);
    RC_ASSERT(step.end > step.start);
    at = step.end;
  }
  RC_ASSERT(at == path.length);
  RC_ASSERT(path.compute + path.communication + path.host == path.length);
}

TEST(CriticalPath, OfASlowHostIsTheHost) {
  hand_made::Program program;
  for (int i = 0; i < 10; ++i) program.compute(0, 1'000'000);
  Profile profile = hand_made::plain_profile();
  profile.at(ParameterId::host_time_per_op_us).value = 50;
  SimulationOptions options;
  options.graph = true;
  const auto simulator = Simulator::create(program.program, hand_made::cluster(1));
  const auto result = simulator->run(profile, options);
  const CriticalPath path = critical_path(program.program, result->graph);
  EXPECT_EQ(path.length, Time::from_us(501));
  EXPECT_GE(path.host, Time::from_us(450));
}

TEST(CriticalPath, OfNothingIsEmpty) { EXPECT_TRUE(critical_path(StepProgram{}, StepGraph{}).steps.empty()); }

// --- Sensitivity
// ---------------------------------------------------------------------------------------------

TEST(Sensitivity, RanksWhatTheStepIsBoundBy) {
  const Cluster cluster = build(*find_cluster("4xa30_pcie"));
  const auto alone =
      sensitivity(reference_model(), reference_training(), ParallelPlan{}, cluster, default_profile());
  ASSERT_TRUE(alone.has_value());
  EXPECT_EQ(alone->front().name, "matmul rate");  // fp32 on ordinary cores
  EXPECT_TRUE(std::is_sorted(alone->begin(), alone->end(),
                             [](const auto& x, const auto& y) { return x.gain_percent > y.gain_percent; }));
  for (const SensitivityRow& row : *alone) EXPECT_EQ(row.name.find("PCIe"), std::string::npos);

  ParallelPlan tp;
  tp.tp = 4;
  tp.tp_kind = TensorParallelKind::column_gather;
  const auto split =
      sensitivity(reference_model(), reference_training(Precision::fp16_amp), tp, cluster, default_profile());
  // Its 72 all-gathers and all-reduces cross the CPU sockets. Twice the bandwidth wins something, but never
  // more than half of the exposed communication.
  const Prediction p = predicted(tp, reference_training(Precision::fp16_amp));
  const double exposed_percent = 100 * p.exposed_communication.ms() / p.step_time_ms.value;
  double best = 0;
  for (const SensitivityRow& row : *split) {
    if (row.name != "PCIe bandwidth" && row.name != "host bridge bandwidth") continue;
    EXPECT_LE(row.gain_percent, exposed_percent / 2 + 0.1) << row.name;
    best = std::max(best, row.gain_percent);
  }
  EXPECT_GT(best, 2);
}

// --- Cost
// ----------------------------------------------------------------------------------------------------

TEST(Cost, FollowsFromStepTimePriceAndPower) {
  Prediction p;
  p.step_time_ms = {1000, 900, 1100};
  p.tokens_per_step = 1e6;
  p.gpus = 8;
  p.mean_breakdown.compute = Time::from_ms(500);
  p.mean_breakdown.bubble = Time::from_ms(500);
  Cluster cluster;
  cluster.gpu.power_w = 400;
  cluster.power_usage_effectiveness = 1.25;
  const CostEstimate cost = estimate_cost(p, cluster, {3.6e9, 2.0, 0.1});
  EXPECT_EQ(cost.steps, 3600);
  EXPECT_NEAR(cost.hours.value, 1.0, 1e-12);
  EXPECT_NEAR(cost.hours.low, 0.9, 1e-12);
  EXPECT_NEAR(cost.gpu_hours.value, 8, 1e-12);
  EXPECT_NEAR(cost.usd.value, 16, 1e-12);
  EXPECT_NEAR(cost.usd.high, 17.6, 1e-12);
  // Half of the time at 400 W, half at 40 % of it: 280 W x 8 h x 1.25.
  EXPECT_NEAR(cost.energy_kwh.value, 2.8, 1e-12);
  EXPECT_NEAR(cost.electricity_usd.value, 0.28, 1e-12);
}

TEST(Cost, NothingToTrainCostsNothing) {
  const CostEstimate cost = estimate_cost(Prediction{}, Cluster{}, {});
  EXPECT_EQ(cost.steps, 0);
  EXPECT_EQ(cost.usd.value, 0);
}

}  // namespace
}  // namespace foretrain
