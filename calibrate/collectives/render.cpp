// Text and JSON of a CollectiveReport.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "calibrate/collectives/validate.h"
#include "model/base/format.h"
#include "model/json/write.h"

namespace foretrain {
namespace {

std::string shortened(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 1) + "~";
}

// Three significant digits.
std::string digits(double value) {
  const double size = std::abs(value);
  return format_fixed(value, size < 10 ? 2 : size < 100 ? 1 : 0);
}

std::string with_error(const CollectiveEstimate& estimate) {
  if (estimate.at_bound) return digits(estimate.value) + " (bound)";
  if (!estimate.standard_error || *estimate.standard_error > 10 * estimate.value) {
    return digits(estimate.value) + " (open)";
  }
  return digits(estimate.value) + " +- " + digits(*estimate.standard_error);
}

std::string line(const CollectiveSweepResult& result) {
  const auto& sweep = result.sweep;
  return fmt::format("{:<26} {:<14} {:>3} x {:<3} {:>3} {:>7} {:>7} {:>7} {:>7} {:>7}  {:<15} {:<16} {}{}\n",
                     shortened(sweep.gpu, 26), name_of(sweep.kind), sweep.group.nodes,
                     sweep.group.ranks / sweep.group.nodes, result.errors.n,
                     format_fixed(result.errors.median_pct, 1), format_fixed(result.errors.p90_pct, 1),
                     format_fixed(result.errors.mape_pct, 1),
                     result.held_out ? format_fixed(result.held_out->median_pct, 1) : "",
                     result.held_out ? format_fixed(result.held_out->p90_pct, 1) : "",
                     with_error(result.fit.latency_scale), with_error(result.fit.bus_bandwidth_gb_per_s),
                     with_error(result.fit.protocol_ratio), result.counted ? "" : "  *");
}

std::string summary_line(std::string_view what, const ErrorSummary& errors) {
  return fmt::format("{:<44} {:>4} {:>7} {:>7} {:>7}\n", what, errors.n, format_fixed(errors.median_pct, 2),
                     format_fixed(errors.p90_pct, 2), format_fixed(errors.mape_pct, 2));
}

JsonValue text_or_null(const std::string& text) {
  return text.empty() ? JsonValue::make_null() : JsonValue::make_string(text);
}

double rounded(double value) { return std::round(value * 1000) / 1000; }

void set_errors(JsonValue& object, const ErrorSummary& errors) {
  object.set("n", JsonValue::make_integer(static_cast<std::int64_t>(errors.n)));
  object.set("mape_pct", JsonValue::make_number(rounded(errors.mape_pct)));
  object.set("median_pct", JsonValue::make_number(rounded(errors.median_pct)));
  object.set("p90_pct", JsonValue::make_number(rounded(errors.p90_pct)));
  object.set("bias_pct", JsonValue::make_number(rounded(errors.bias_pct)));
  object.set("max_abs_pct", JsonValue::make_number(rounded(errors.max_pct)));
}

JsonValue errors_json(const ErrorSummary& errors) {
  JsonValue object = JsonValue::make_object();
  set_errors(object, errors);
  return object;
}

JsonValue estimate_json(const CollectiveEstimate& estimate) {
  JsonValue object = JsonValue::make_object();
  object.set("value", JsonValue::make_number(estimate.value));
  object.set("standard_error", estimate.standard_error ? JsonValue::make_number(*estimate.standard_error)
                                                       : JsonValue::make_null());
  object.set("at_bound", JsonValue::make_bool(estimate.at_bound));
  return object;
}

JsonValue prediction_json(const CollectivePrediction& prediction) {
  JsonValue object = JsonValue::make_object();
  object.set("size_bytes", JsonValue::make_integer(prediction.bytes));
  object.set("measured_us", JsonValue::make_number(prediction.measured_us));
  object.set("predicted_us", JsonValue::make_number(rounded(prediction.predicted_us)));
  object.set("error_pct",
             JsonValue::make_number(rounded((prediction.predicted_us / prediction.measured_us - 1) * 100)));
  if (prediction.held_out_us > 0) {
    object.set("held_out_us", JsonValue::make_number(rounded(prediction.held_out_us)));
  }
  object.set("algorithm", JsonValue::make_string(std::string(name_of(prediction.algorithm))));
  object.set("protocol", JsonValue::make_string(std::string(name_of(prediction.protocol))));
  return object;
}

JsonValue sweep_json(const CollectiveSweepResult& result) {
  const auto& sweep = result.sweep;
  JsonValue object = JsonValue::make_object();
  object.set("gpu", JsonValue::make_string(sweep.gpu));
  object.set("op", JsonValue::make_string(std::string(name_of(sweep.kind))));
  object.set("n_gpus", JsonValue::make_integer(sweep.group.ranks));
  object.set("nodes", JsonValue::make_integer(sweep.group.nodes));
  object.set("intra_link", text_or_null(sweep.intra_link));
  object.set("inter_link", text_or_null(sweep.inter_link));
  object.set("library", text_or_null(sweep.library));
  object.set("dtype", text_or_null(sweep.dtype));
  object.set("source", text_or_null(sweep.source));
  object.set("sizes", JsonValue::make_integer(static_cast<std::int64_t>(sweep.distinct_sizes())));
  object.set("counted", JsonValue::make_bool(result.counted));
  set_errors(object, result.errors);
  object.set("held_out", result.held_out ? errors_json(*result.held_out) : JsonValue::make_null());
  JsonValue parameters = JsonValue::make_object();
  parameters.set("latency_scale", estimate_json(result.fit.latency_scale));
  parameters.set("bus_bandwidth_gb_per_s", estimate_json(result.fit.bus_bandwidth_gb_per_s));
  parameters.set("protocol_ratio", estimate_json(result.fit.protocol_ratio));
  object.set("parameters", std::move(parameters));
  JsonValue points = JsonValue::make_array();
  for (const auto& prediction : result.predictions) points.append(prediction_json(prediction));
  object.set("points", std::move(points));
  return object;
}

}  // namespace

std::string to_text(const CollectiveReport& report) {
  std::string text =
      fmt::format("{:<26} {:<14} {:>3} x {:<3} {:>3} {:>7} {:>7} {:>7} {:>7} {:>7}  {:<15} {:<16} {}\n",
                  "GPU", "collective", "nod", "gpu", "n", "med %", "p90 %", "mape %", "held", "p90 %",
                  "latency scale", "bus GB/s", "protocol ratio");
  bool small = false;
  for (const auto& result : report.sweeps) {
    text += line(result);
    small = small || !result.counted;
  }
  if (small) text += fmt::format("* fewer than {} sizes: not in the summary\n", kCountedSizes);
  text += fmt::format("\n{:<44} {:>4} {:>7} {:>7} {:>7}\n", "error of all sizes", "n", "med %", "p90 %",
                      "mape %");
  text += summary_line(fmt::format("{} sweeps, 3 parameters each", report.sweeps_counted), report.errors);
  text += summary_line("  every fourth size held out in turn", report.held_out);
  text += summary_line(fmt::format("  3 parameters for each of {} machines", report.machines_counted),
                       report.shared);
  if (report.sweeps_in_table > report.sweeps.size()) {
    text += fmt::format("{} sweeps of the table have fewer than {} sizes and were not fitted\n",
                        report.sweeps_in_table - report.sweeps.size(), kFittedSizes);
  }
  return text;
}

std::string to_json_text(const CollectiveReport& report) {
  JsonValue root = JsonValue::make_object();
  JsonValue sweeps = JsonValue::make_array();
  for (const auto& result : report.sweeps) sweeps.append(sweep_json(result));
  root.set("collectives", std::move(sweeps));
  JsonValue summary = errors_json(report.errors);
  summary.set("sweeps", JsonValue::make_integer(static_cast<std::int64_t>(report.sweeps_counted)));
  summary.set("fitted_parameters_per_sweep", JsonValue::make_integer(kCollectiveParameters));
  summary.set("held_out", errors_json(report.held_out));
  JsonValue shared = errors_json(report.shared);
  shared.set("machines", JsonValue::make_integer(static_cast<std::int64_t>(report.machines_counted)));
  shared.set("fitted_parameters_per_machine", JsonValue::make_integer(kCollectiveParameters));
  summary.set("shared_by_machine", std::move(shared));
  root.set("summary", std::move(summary));
  return to_text(root);
}

}  // namespace foretrain
