// Text and JSON of a KernelReport.
#include <fmt/format.h>

#include <cmath>

#include "calibrate/kernels/validate.h"
#include "model/base/format.h"

namespace foretrain {
namespace {

std::string shortened(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

std::string with_error(const KernelEstimate& estimate) {
  const KernelParameterSpec& spec = spec_of(estimate.id);
  std::string error = fmt::format("+- {:.2g}", estimate.standard_error);
  if (!std::isfinite(estimate.standard_error)) error = "not determined";
  if (estimate.at_bound) error = "at its bound";
  const bool has_unit = spec.unit != "fraction" && spec.unit != "factor";
  return fmt::format("{} {:.3g}{}{} ({})", spec.name, estimate.value, has_unit ? " " : "",
                     has_unit ? spec.unit : std::string_view{}, error);
}

std::string numbers(const ErrorSummary& errors) {
  return fmt::format("{:>7} {:>7} {:>7} {:>7}", format_fixed(errors.mape_pct, 2),
                     format_fixed(errors.median_pct, 2), format_fixed(errors.p90_pct, 2),
                     format_fixed(errors.bias_pct, 2));
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

void set_errors(JsonValue& object, const ErrorSummary& errors) {
  object.set("mape_pct", JsonValue::make_number(rounded(errors.mape_pct)));
  object.set("median_pct", JsonValue::make_number(rounded(errors.median_pct)));
  object.set("p90_pct", JsonValue::make_number(rounded(errors.p90_pct)));
  object.set("max_abs_pct", JsonValue::make_number(rounded(errors.max_pct)));
  object.set("bias_pct", JsonValue::make_number(rounded(errors.bias_pct)));
}

JsonValue errors_json(const ErrorSummary& errors) {
  JsonValue object = JsonValue::make_object();
  set_errors(object, errors);
  return object;
}

JsonValue estimate_json(const KernelEstimate& estimate) {
  const KernelParameterSpec& spec = spec_of(estimate.id);
  JsonValue object = JsonValue::make_object();
  object.set("name", JsonValue::make_string(std::string(spec.name)));
  object.set("unit", JsonValue::make_string(std::string(spec.unit)));
  object.set("value", JsonValue::make_number(estimate.value));
  object.set("standard_error", JsonValue::make_number(estimate.standard_error));
  object.set("at_bound", JsonValue::make_bool(estimate.at_bound));
  return object;
}

JsonValue count_json(std::size_t n) { return JsonValue::make_integer(static_cast<std::int64_t>(n)); }

JsonValue group_json(const KernelGroup& group) {
  JsonValue object = JsonValue::make_object();
  object.set("gpu", JsonValue::make_string(group.gpu_name));
  object.set("preset", JsonValue::make_string(group.preset));
  object.set("op", JsonValue::make_string(group.op));
  object.set("dtype", JsonValue::make_string(group.dtype));
  object.set("kind", JsonValue::make_string(std::string(name_of(group.kind))));
  object.set("n", count_json(group.n));
  set_errors(object, group.held_out ? *group.held_out : group.defaults);
  object.set("validation", JsonValue::make_string(group.held_out ? "held_out" : "defaults"));
  if (group.held_out) object.set("folds", JsonValue::make_integer(kKernelFolds));
  if (group.in_sample) object.set("in_sample", errors_json(*group.in_sample));
  JsonValue defaults = errors_json(group.defaults);
  defaults.set("provenance", JsonValue::make_string(group.defaults_provenance));
  object.set("defaults", std::move(defaults));
  JsonValue fitted = JsonValue::make_array();
  for (const KernelEstimate& estimate : group.fitted) fitted.append(estimate_json(estimate));
  object.set("fitted_parameters", std::move(fitted));
  return object;
}

}  // namespace

std::string to_text(const KernelReport& report) {
  std::string text = fmt::format(
      "Error of predicted kernel times in per cent, on rows held out in {} folds; * too few rows to fit: "
      "default parameters.\n{:<18} {:<22} {:<16} {:>5} {:>7} {:>7} {:>7} {:>7} {:>9} {:>9}\n",
      kKernelFolds, "gpu", "op", "dtype", "n", "mean", "median", "p90", "bias", "in-sample", "defaults");
  for (const KernelGroup& group : report.groups)
    text += fmt::format("{:<18} {:<22} {:<16} {:>5} {} {:>9} {:>9}{}\n", shortened(group.gpu_name, 18),
                        shortened(group.op, 22), shortened(group.dtype, 16), group.n,
                        numbers(group.held_out ? *group.held_out : group.defaults),
                        group.in_sample ? format_fixed(group.in_sample->mape_pct, 2) : "",
                        format_fixed(group.defaults.mape_pct, 2), group.held_out ? "" : " *");
  text += "\nFitted parameters (standard error)\n";
  for (const KernelGroup& group : report.groups) {
    if (group.fitted.empty()) continue;
    text += fmt::format("{}, {}, {}:\n", group.gpu_name, group.op, group.dtype);
    for (const KernelEstimate& estimate : group.fitted) text += "  " + with_error(estimate) + "\n";
  }
  if (!report.skipped.empty()) text += "\nNot validated\n";
  for (const SkippedRows& skipped : report.skipped)
    text += fmt::format("{:<18} {:<28} {:<16} {:>5}  {}\n", shortened(skipped.gpu_name, 18),
                        shortened(skipped.op, 28), shortened(skipped.dtype, 16), skipped.n, skipped.reason);
  return text;
}

JsonValue to_json(const KernelReport& report) {
  JsonValue root = JsonValue::make_object();
  JsonValue groups = JsonValue::make_array();
  for (const KernelGroup& group : report.groups) groups.append(group_json(group));
  root.set("kernels", std::move(groups));
  JsonValue skipped = JsonValue::make_array();
  for (const SkippedRows& rows : report.skipped) {
    JsonValue object = JsonValue::make_object();
    object.set("gpu", JsonValue::make_string(rows.gpu_name));
    object.set("op", JsonValue::make_string(rows.op));
    object.set("dtype", JsonValue::make_string(rows.dtype));
    object.set("n", count_json(rows.n));
    object.set("reason", JsonValue::make_string(rows.reason));
    skipped.append(std::move(object));
  }
  root.set("skipped", std::move(skipped));
  return root;
}

}  // namespace foretrain
