#include "sim/device/kernel_parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace foretrain {
namespace {

TEST(KernelParameters, AreDeclaredOnceInTheirOrder) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kKernelParameters; ++i) {
    const KernelParameterSpec& spec = spec_of(static_cast<KernelParameterId>(i));
    EXPECT_EQ(static_cast<std::size_t>(spec.id), i);
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_GT(spec.low, 0) << spec.name;
    EXPECT_LT(spec.low, spec.high) << spec.name;
    EXPECT_FALSE(spec.sentence.empty());
  }
}

TEST(KernelParameters, EverySetFitsAtMostSevenAndStaysInsideTheBounds) {
  for (const KernelParameterSet& set : kernel_parameter_sets()) {
    EXPECT_LE(set.fitted.size(), 7u) << set.provenance;
    EXPECT_GE(set.fitted.size(), 3u) << set.provenance;
    for (const KernelParameterId id : set.fitted) {
      const KernelParameterSpec& spec = spec_of(id);
      EXPECT_GE(set.parameters[id], spec.low) << set.provenance << ": " << spec.name;
      EXPECT_LE(set.parameters[id], spec.high) << set.provenance << ": " << spec.name;
    }
    for (std::size_t i = 0; i < kKernelParameters; ++i) {
      const auto id = static_cast<KernelParameterId>(i);
      const bool fitted = std::find(set.fitted.begin(), set.fitted.end(), id) != set.fitted.end();
      if (!fitted) {
        EXPECT_EQ(set.standard_errors[id], 0) << set.provenance << ": " << spec_of(id).name;
      }
    }
  }
}

TEST(KernelParameters, AnUnmeasuredArchitectureTakesTheNearestOlderOne) {
  const auto measured_on = [](KernelKind kind, GpuArchitecture architecture) {
    return default_kernel_parameters(kind, architecture).architecture;
  };
  EXPECT_EQ(measured_on(KernelKind::matmul_tensor, GpuArchitecture::turing), GpuArchitecture::volta);
  EXPECT_EQ(measured_on(KernelKind::matmul_tensor, GpuArchitecture::hopper), GpuArchitecture::ampere);
  EXPECT_EQ(measured_on(KernelKind::matmul_tensor, GpuArchitecture::blackwell), GpuArchitecture::blackwell);
  EXPECT_EQ(measured_on(KernelKind::matmul_ordinary, GpuArchitecture::ampere), GpuArchitecture::volta);
  EXPECT_EQ(measured_on(KernelKind::matmul_ordinary, GpuArchitecture::cpu), GpuArchitecture::volta);
  EXPECT_EQ(measured_on(KernelKind::attention_forward, GpuArchitecture::volta), GpuArchitecture::ampere);
}

}  // namespace
}  // namespace foretrain
