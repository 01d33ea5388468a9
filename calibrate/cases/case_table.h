// Case tables: one measured run per row over a base scenario, in a CSV that any spreadsheet writes. A header
// is a dotted scenario path ("parallel.dp", "training.precision"; an empty cell leaves the base's value),
// `name`, `scenario` (a scenario file for this row), or what was measured:
//   measured.step_time_ms, measured.tokens_per_s (whole job), measured.peak_mem_gib (GiB, 2^30),
//   measured.peak_mem_gb (GB, 10^9), measured.mfu_pct
// Without a `scenario` column the base is base.json beside the table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/scenario/scenario.h"

namespace foretrain {

struct MeasuredCase {
  std::string name;
  Scenario scenario;
  Location where;                      // the row
  std::optional<double> step_time_ms;  // given, or made from tokens_per_s
  std::optional<double> tokens_per_s;
  std::optional<double> peak_mem_gib;  // given, or made from peak_mem_gb
  std::optional<double> mfu_pct;
};

struct CaseTable {
  std::string file;
  bool memory_in_gb = false;  // the table's column says GB
  std::vector<MeasuredCase> cases;
  Profile profile;  // the base scenario's (the first row's)
};

// `base`: a scenario file instead of base.json; `overrides`: laid over every row. Errors: those of CSV and
// scenarios, with the cell's line and column; no measured column; a measured value that is not above 0.
Expected<CaseTable> read_case_table(const std::string& file, const std::string& base = {},
                                    const Overrides& overrides = {});

}  // namespace foretrain
