// Fits the kernel model's parameters to measured rows of one GPU and kind.
#pragma once

#include <span>
#include <vector>

#include "calibrate/kernels/rows.h"
#include "model/base/error.h"
#include "sim/device/kernel_parameters.h"

namespace foretrain {

struct KernelEstimate {
  KernelParameterId id;
  double value = 0;
  double standard_error = 0;  // infinite: the rows do not determine it
  bool at_bound = false;
};

struct KernelFit {
  KernelParameters parameters;
  std::vector<KernelEstimate> estimates;  // of the fitted parameters; the others are the set's
};

// Fewer rows per parameter than this are not fitted.
constexpr std::size_t kRowsPerParameter = 4;

// The parameters that `rows` rows can carry: those the set fits, the most important first, one per
// kRowsPerParameter rows (at most seven).
std::vector<KernelParameterId> parameters_to_fit(const KernelParameterSet& set, std::size_t rows);

// Minimises the mean of |predicted / measured - 1| (soft, so that outliers do not pull) over `fitted`, from a
// neutral starting point and others spread over the bounds: the set gives only the values that are not
// fitted, so that held-out rows cannot leak through the defaults. All rows must be of one kind.
Expected<KernelFit> fit_kernel(std::span<const KernelRow> rows, const KernelParameterSet& set,
                               std::span<const KernelParameterId> fitted);

}  // namespace foretrain
