// Cost of one evaluation of the kernel model, and a bound on it as a count of evaluations per second.
#include <benchmark/benchmark.h>

#include "sim/device/matmul.h"

namespace foretrain {
namespace {

void choose(benchmark::State& state) {
  const GpuSpec& gpu = *find_gpu("a30");
  MatmulShape shape;
  shape.m = 2048;
  shape.n = state.range(0);
  shape.k = 768;
  shape.input = shape.output = DType::fp16;
  shape.tensor_cores = true;
  const auto& p = default_kernel_parameters(KernelKind::matmul_tensor, gpu.architecture).parameters;
  for (auto _ : state) benchmark::DoNotOptimize(matmul_time(gpu, shape, p));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(choose)->Arg(64)->Arg(768)->Arg(50257);

}  // namespace
}  // namespace foretrain
