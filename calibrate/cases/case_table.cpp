#include "calibrate/cases/case_table.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "model/base/text.h"
#include "model/json/csv.h"
#include "model/json/reader.h"

namespace foretrain {
namespace {

enum class Column { name, scenario, step_time_ms, tokens_per_s, peak_mem_gib, peak_mem_gb, mfu_pct, field };

constexpr std::pair<std::string_view, Column> kSpecial[] = {{"name", Column::name},
                                                            {"scenario", Column::scenario},
                                                            {"measured.step_time_ms", Column::step_time_ms},
                                                            {"measured.tokens_per_s", Column::tokens_per_s},
                                                            {"measured.peak_mem_gib", Column::peak_mem_gib},
                                                            {"measured.peak_mem_gb", Column::peak_mem_gb},
                                                            {"measured.mfu_pct", Column::mfu_pct}};

std::vector<Column> read_header(const CsvTable& table, Errors& errors) {
  std::vector<Column> columns;
  std::vector<std::string> known;
  for (const auto& [name, unused] : kSpecial) known.emplace_back(name);
  for (const ScenarioField& field : scenario_fields()) known.push_back(field.path);
  bool measured = false;
  for (std::size_t c = 0; c < table.columns(); ++c) {
    const std::string& header = table.header(c).text;
    Column kind = Column::field;
    for (const auto& [name, column] : kSpecial) {
      if (header == name) kind = column;
    }
    if (kind == Column::field && std::find(known.begin(), known.end(), header) == known.end()) {
      const auto guess = nearest(header, known);
      errors.push_back(Error{ErrorCode::input, table.header_where(c),
                             "is neither a scenario field nor a measured column",
                             guess ? fmt::format("did you mean \"{}\"?", *guess)
                                   : "`foretrain list fields` shows the fields; measured columns are "
                                     "measured.step_time_ms, measured.tokens_per_s, measured.peak_mem_gib"});
    }
    measured = measured || header.starts_with("measured.");
    columns.push_back(kind);
  }
  if (!measured && errors.empty()) {
    errors.push_back(Error{ErrorCode::input,
                           {table.file(), 1, 1, ""},
                           "has no measured column",
                           "add measured.step_time_ms, measured.tokens_per_s or measured.peak_mem_gib"});
  }
  return columns;
}

std::optional<double> positive(const CsvTable& table, std::size_t row, std::size_t column, Errors& errors) {
  if (trim(table.text(row, column)).empty()) return std::nullopt;
  const auto value = table.number(row, column, errors);
  if (value && !(*value > 0)) {
    errors.push_back(Error{ErrorCode::input, table.where(row, column),
                           fmt::format("is {}; expected a number above 0", table.text(row, column)),
                           "leave the cell empty when nothing was measured"});
    return std::nullopt;
  }
  return value;
}

}  // namespace

Expected<CaseTable> read_case_table(const std::string& file, const std::string& base,
                                    const Overrides& overrides) {
  auto csv = parse_csv_file(file);
  if (!csv) return fail(std::move(csv.error()));
  Errors errors;
  const std::vector<Column> columns = read_header(*csv, errors);
  if (!errors.empty()) return fail(std::move(errors));
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  CaseTable table;
  table.file = file;
  for (std::size_t row = 0; row < csv->rows(); ++row) {
    MeasuredCase entry;
    entry.where = csv->where(row, 0);
    entry.where.path.clear();
    std::string scenario_file = base.empty() ? (folder / "base.json").string() : base;
    Overrides fields = overrides;
    std::optional<double> gb;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const std::string text(trim(csv->text(row, c)));
      switch (columns[c]) {
        case Column::name:
          entry.name = text;
          break;
        case Column::scenario:
          if (!text.empty()) scenario_file = (folder / text).lexically_normal().string();
          break;
        case Column::step_time_ms:
          entry.step_time_ms = positive(*csv, row, c, errors);
          break;
        case Column::tokens_per_s:
          entry.tokens_per_s = positive(*csv, row, c, errors);
          break;
        case Column::peak_mem_gib:
          entry.peak_mem_gib = positive(*csv, row, c, errors);
          break;
        case Column::peak_mem_gb:
          gb = positive(*csv, row, c, errors);
          break;
        case Column::mfu_pct:
          entry.mfu_pct = positive(*csv, row, c, errors);
          break;
        case Column::field:
          if (!text.empty()) fields.emplace_back(csv->header(c).text, text);
          break;
      }
    }
    if (gb) {
      table.memory_in_gb = true;
      entry.peak_mem_gib = *gb * 1e9 / 1073741824.0;
    }
    if (entry.name.empty()) entry.name = fmt::format("row {}", row + 1);
    auto scenario = read_scenario(scenario_file, fields);
    if (!scenario) {
      for (Error& error : scenario.error()) {
        // What a cell set is reported at its row; what the base file says stays where it stands.
        if (error.where.file.starts_with("--set")) {
          error.where.file = file;
          error.where.line = entry.where.line;
          error.where.column = 1;
        } else {
          error.message += fmt::format(" (in {}:{}, case \"{}\")", file, entry.where.line, entry.name);
        }
        errors.push_back(std::move(error));
      }
      continue;
    }
    entry.scenario = std::move(*scenario);
    const TrainingSpec& t = entry.scenario.training;
    const double tokens = static_cast<double>(t.tokens_per_micro_batch() * t.micro_batches) *
                          entry.scenario.parallel.dp * entry.scenario.parallel.fsdp;
    if (!entry.step_time_ms && entry.tokens_per_s) entry.step_time_ms = tokens / *entry.tokens_per_s * 1e3;
    if (!entry.tokens_per_s && entry.step_time_ms) entry.tokens_per_s = tokens / *entry.step_time_ms * 1e3;
    table.cases.push_back(std::move(entry));
  }
  if (errors.empty() && table.cases.empty()) {
    errors.push_back(Error{
        ErrorCode::input, {file, 1, 1, ""}, "has a header but no rows", "add one measured run per row"});
  }
  if (!errors.empty()) return fail(std::move(errors));
  table.profile = table.cases.front().scenario.profile;
  return table;
}

}  // namespace foretrain
