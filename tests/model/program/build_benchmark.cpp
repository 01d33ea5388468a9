// Building and checking the programs of large plans.
#include <benchmark/benchmark.h>

#include "model/arch/transformer.h"
#include "model/program/step_program.h"

namespace foretrain {
namespace {

// Llama-3 405B on 16,384 GPUs: DP128 x TP8 x PP16, 64 micro-batches.
struct Llama405B {
  TransformerConfig model = *find_model("llama3_405b");
  TrainingSpec training;
  ParallelPlan plan;
  Llama405B() {
    training.micro_batches = 64;
    training.sequence_length = 8192;
    training.precision = Precision::bf16;
    training.attention = AttentionKernel::flash;
    plan.dp = 128;
    plan.tp = 8;
    plan.pp = 16;
    plan.sequence_parallel = true;
  }
};

void build_llama_405b(benchmark::State& state) {
  const Llama405B c;
  for (auto _ : state) benchmark::DoNotOptimize(build_step_program(c.model, c.training, c.plan));
}
BENCHMARK(build_llama_405b)->Unit(benchmark::kMillisecond);

void check_llama_405b(benchmark::State& state) {
  const Llama405B c;
  const auto program = build_step_program(c.model, c.training, c.plan);
  for (auto _ : state) benchmark::DoNotOptimize(check(*program));
}
BENCHMARK(check_llama_405b)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretrain
