#include "cli/case_output.h"

#include <fmt/format.h>

#include "cli/output.h"
#include "model/base/format.h"

namespace foretrain {
namespace {

std::string signed_percent(double value) { return fmt::format("{:+.1f} %", value); }

std::string held_out(const CaseError& error) {
  return error.held_out_error_pct ? signed_percent(*error.held_out_error_pct) : "-";
}

TextTable case_table(const CaseValidation& v) {
  TextTable table({"<case", "measured (ms)", "predicted (ms)", "error", "left out", "measured (GiB)",
                   "predicted (GiB)", "error", "left out"});
  for (const ValidatedCase& c : v.cases) {
    std::vector<std::string> row{c.name};
    if (c.step_time_ms) {
      row.insert(row.end(),
                 {format_fixed(c.step_time_ms->measured, 1), format_fixed(c.step_time_ms->predicted, 1),
                  signed_percent(c.step_time_ms->error_pct), held_out(*c.step_time_ms)});
    } else {
      row.insert(row.end(), {"-", "-", "-", "-"});
    }
    if (c.peak_mem_gib) {
      row.insert(row.end(),
                 {format_fixed(c.peak_mem_gib->measured, 2), format_fixed(c.peak_mem_gib->predicted, 2),
                  signed_percent(c.peak_mem_gib->error_pct), held_out(*c.peak_mem_gib)});
    } else {
      row.insert(row.end(), {"-", "-", "-", "-"});
    }
    table.row(std::move(row));
  }
  return table;
}

std::string statistics_text(const char* name, const ErrorStatistics& s) {
  return fmt::format("  {:<34} mean {:.2f} %, worst {:.2f} %, bias {:+.2f} % over {} cases\n", name,
                     s.mape_pct, s.max_abs_pct, s.bias_pct, s.n);
}

JsonValue to_json(const ErrorStatistics& s) {
  return json_object({{"n", json(static_cast<std::int64_t>(s.n))},
                      {"mape_pct", json(s.mape_pct)},
                      {"max_abs_pct", json(s.max_abs_pct)},
                      {"bias_pct", json(s.bias_pct)}});
}

JsonValue to_json(const std::optional<CaseError>& error) {
  if (!error) return JsonValue::make_null();
  JsonValue out = json_object({{"predicted", json(error->predicted)},
                               {"measured", json(error->measured)},
                               {"error_pct", json(error->error_pct)}});
  if (error->held_out_error_pct) out.set("held_out_error_pct", json(*error->held_out_error_pct));
  return out;
}

}  // namespace

std::string fitted_text(const Profile& profile, const std::vector<ParameterId>& fitted) {
  TextTable table({"<fitted parameter", "value", "standard error", "<unit", "<fitted to"});
  std::string meanings;
  for (const ParameterId id : fitted) {
    const ParameterSpec& spec = profile_parameters()[static_cast<std::size_t>(id)];
    const ParameterValue& value = profile.at(id);
    table.row({std::string(spec.name), fmt::format("{:.4g}", value.value),
               fmt::format("{:.2g}", value.standard_error), std::string(spec.unit), value.provenance});
    meanings += fmt::format("  {}: {}\n", spec.name, spec.sentence);
  }
  return table.to_text() + "\n" + meanings;
}

std::string to_text(const CaseValidation& v) {
  std::string text = case_table(v).to_text() + "\n";
  if (v.step_time.n > 0) text += statistics_text("step time, fitted rows", v.step_time);
  if (v.step_time_held_out)
    text += statistics_text("step time, row left out of the fit", *v.step_time_held_out);
  if (v.peak_mem.n > 0) text += statistics_text("peak memory, fitted rows", v.peak_mem);
  if (v.peak_mem_held_out) text += statistics_text("peak memory, row left out", *v.peak_mem_held_out);
  if (!v.fitted.empty()) text += "\n" + fitted_text(v.profile, v.fitted);
  for (const std::string& warning : v.warnings) text += fmt::format("\nwarning: {}\n", warning);
  return text;
}

JsonValue to_json(const CaseValidation& v) {
  JsonValue cases = JsonValue::make_array();
  for (const ValidatedCase& c : v.cases) {
    JsonValue warnings = JsonValue::make_array();
    for (const std::string& warning : c.warnings) warnings.append(json(warning));
    JsonValue one = json_object({{"name", json(c.name)}});
    if (c.step_time_ms) {
      one.set("predicted", json(c.step_time_ms->predicted));
      one.set("measured", json(c.step_time_ms->measured));
      one.set("error_pct", json(c.step_time_ms->error_pct));
    }
    one.set("step_time_ms", to_json(c.step_time_ms));
    one.set("peak_mem_gib", to_json(c.peak_mem_gib));
    one.set("tokens_per_s", json(c.tokens_per_s));
    one.set("warnings", std::move(warnings));
    cases.append(std::move(one));
  }
  JsonValue summary = json_object({{"step_time", to_json(v.step_time)}, {"peak_mem", to_json(v.peak_mem)}});
  if (v.step_time_held_out || v.peak_mem_held_out) {
    JsonValue& out = summary.set("leave_one_out", JsonValue::make_object());
    if (v.step_time_held_out) out.set("step_time", to_json(*v.step_time_held_out));
    if (v.peak_mem_held_out) out.set("peak_mem", to_json(*v.peak_mem_held_out));
  }
  JsonValue& fitted = summary.set("fitted_parameters", JsonValue::make_array());
  for (const ParameterId id : v.fitted) {
    const ParameterSpec& spec = profile_parameters()[static_cast<std::size_t>(id)];
    const ParameterValue& value = v.profile.at(id);
    fitted.append(json_object({{"name", json(spec.name)},
                               {"value", json(value.value)},
                               {"standard_error", json(value.standard_error)},
                               {"unit", json(spec.unit)},
                               {"provenance", json(value.provenance)},
                               {"meaning", json(spec.sentence)}}));
  }
  return json_object({{"cases", std::move(cases)}, {"summary", std::move(summary)}});
}

std::string to_csv(const CaseValidation& v) { return case_table(v).to_csv(); }

std::string to_text(const Diagnosis& diagnosis) {
  std::string text;
  for (const Finding& finding : diagnosis.findings) {
    text += fmt::format("{}\n", bold(finding.statement));
    for (const std::string& evidence : finding.evidence) text += fmt::format("  - {}\n", evidence);
    text += "\n";
  }
  if (diagnosis.findings.empty()) text += "Nothing odd was found.\n\n";
  text += "Looked for:\n";
  for (const std::string& line : diagnosis.tried) text += fmt::format("  - {}\n", line);
  return text;
}

JsonValue to_json(const Diagnosis& diagnosis) {
  const auto strings = [](const std::vector<std::string>& list) {
    JsonValue out = JsonValue::make_array();
    for (const std::string& text : list) out.append(json(text));
    return out;
  };
  JsonValue findings = JsonValue::make_array();
  for (const Finding& finding : diagnosis.findings) {
    findings.append(json_object({{"kind", json(finding.kind)},
                                 {"statement", json(finding.statement)},
                                 {"evidence", strings(finding.evidence)},
                                 {"cases", strings(finding.cases)}}));
  }
  return json_object({{"findings", std::move(findings)}, {"tried", strings(diagnosis.tried)}});
}

}  // namespace foretrain
