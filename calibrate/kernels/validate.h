// Validates the kernel time model on any table of measured kernels: per GPU, op and dtype a fit, the errors
// on held-out rows, and the errors of the default parameters. Pure functions, safe from any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/fit/least_squares.h"
#include "calibrate/kernels/fit.h"
#include "calibrate/kernels/rows.h"
#include "model/base/error.h"
#include "model/json/value.h"

namespace foretrain {

constexpr int kKernelFolds = 5;

struct KernelGroup {
  std::string gpu_name, op, dtype;  // as written in the table
  std::string preset;               // the GPU it was taken for
  KernelKind kind = KernelKind::matmul_tensor;
  std::size_t n = 0;
  std::optional<ErrorSummary> held_out;   // kKernelFolds-fold cross-validation; nothing when too few rows
  std::optional<ErrorSummary> in_sample;  // of the fit to all rows
  ErrorSummary defaults;                  // of the architecture's default parameters, nothing fitted
  std::string defaults_provenance;
  std::vector<KernelEstimate> fitted;
};

struct KernelReport {
  std::vector<KernelGroup> groups;  // in order of first appearance
  std::vector<SkippedRows> skipped;
};

// Deterministic. Below a minute for thousands of rows on one core.
Expected<KernelReport> validate_kernel_rows(const KernelTable& table);
Expected<KernelReport> validate_kernels(const std::string& path);

// A table for people.
std::string to_text(const KernelReport& report);
// {"kernels":[{gpu, preset, op, dtype, n, mape_pct, median_pct, p90_pct, max_abs_pct, bias_pct, validation,
//   in_sample {...}, defaults {...}, fitted_parameters [{name, unit, value, standard_error, at_bound}]}],
//  "skipped":[{gpu, op, dtype, n, reason}]}. The errors of a group are those of held-out rows where it was
// fitted ("validation": "held_out"), else of the default parameters ("defaults").
JsonValue to_json(const KernelReport& report);

}  // namespace foretrain
