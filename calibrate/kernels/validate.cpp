#include "calibrate/kernels/validate.h"

#include <algorithm>

namespace foretrain {
namespace {

constexpr std::size_t kLeastRows = 12;  // fewer cannot be split into folds that still determine a fit

bool same_group(const KernelRow& a, const KernelRow& b) {
  return a.gpu_name == b.gpu_name && a.op == b.op && a.dtype == b.dtype && a.kind == b.kind;
}

double residual(const KernelRow& row, const KernelParameters& parameters) {
  return log_residual(predicted_us(row, parameters), row.measured_us);
}

ErrorSummary errors_of(std::span<const KernelRow> rows, const KernelParameters& parameters) {
  std::vector<double> residuals;
  for (const KernelRow& row : rows) residuals.push_back(residual(row, parameters));
  return summarize_log_residuals(residuals);
}

Expected<KernelGroup> validate_group(const std::vector<KernelRow>& rows) {
  const KernelRow& first = rows.front();
  const KernelParameterSet& set = default_kernel_parameters(first.kind, first.gpu->architecture);
  KernelGroup group;
  group.gpu_name = first.gpu_name;
  group.op = first.op;
  group.dtype = first.dtype;
  group.preset = first.gpu->name;
  group.kind = first.kind;
  group.n = rows.size();
  group.defaults = errors_of(rows, set.parameters);
  group.defaults_provenance = std::string(set.provenance);
  const std::vector<KernelParameterId> fitted = parameters_to_fit(set, rows.size());
  if (rows.size() < kLeastRows) return group;

  Expected<KernelFit> whole = fit_kernel(rows, set, fitted);
  if (!whole) return fail(std::move(whole.error()));
  group.in_sample = errors_of(rows, whole->parameters);
  group.fitted = std::move(whole->estimates);

  const FitRows fit_rows = [&](std::span<const std::size_t> train) -> Expected<std::vector<double>> {
    std::vector<KernelRow> seen;
    for (const std::size_t row : train) seen.push_back(rows[row]);
    Expected<KernelFit> fit = fit_kernel(seen, set, fitted);
    if (!fit) return fail(std::move(fit.error()));
    return std::vector<double>(fit->parameters.values.begin(), fit->parameters.values.end());
  };
  const RowResidual held_out_residual = [&](std::span<const double> values, std::size_t row) {
    KernelParameters parameters;
    std::copy(values.begin(), values.end(), parameters.values.begin());
    return residual(rows[row], parameters);
  };
  auto held_out = cross_validate(rows.size(), kKernelFolds, 1, fit_rows, held_out_residual);
  if (!held_out) return fail(std::move(held_out.error()));
  group.held_out = summarize_log_residuals(*held_out);
  return group;
}

}  // namespace

Expected<KernelReport> validate_kernel_rows(const KernelTable& table) {
  std::vector<std::vector<KernelRow>> groups;
  for (const KernelRow& row : table.rows) {
    const auto known = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return same_group(group.front(), row); });
    if (known == groups.end()) {
      groups.push_back({row});
    } else {
      known->push_back(row);
    }
  }
  KernelReport report;
  report.skipped = table.skipped;
  for (const std::vector<KernelRow>& rows : groups) {
    Expected<KernelGroup> group = validate_group(rows);
    if (!group) return fail(std::move(group.error()));
    report.groups.push_back(std::move(*group));
  }
  return report;
}

Expected<KernelReport> validate_kernels(const std::string& path) {
  Expected<KernelTable> table = read_kernel_rows(path);
  if (!table) return fail(std::move(table.error()));
  return validate_kernel_rows(*table);
}

}  // namespace foretrain
