// Looks for what is odd in a table of measured runs, from the table and the simulator alone: each finding
// with the numbers that speak for it, nothing when the table is clean.
//
// What is tried:
//   memory unit      the column says GB but its values fit GiB (or the reverse)
//   memory of PP     pipeline rows fit only a step in which ranks before the last run no backward
//   multi-GPU rows   all work on the device is slower by one factor than in single-GPU rows, which no
//                    communication explains (pipeline rows, where one GPU works at a time, tell them apart)
//   MFU column       does not follow from 6 N tokens/s over the peak
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "calibrate/cases/prepared_cases.h"

namespace foretrain {

struct Finding {
  std::string kind;       // "memory_unit", "pp_forward_only_ranks", "multi_gpu_slowdown", "mfu_column"
  std::string statement;  // one sentence
  std::vector<std::string> evidence;  // one number or comparison each, with units
  std::vector<std::string> cases;     // concerned
};

struct Diagnosis {
  std::vector<Finding> findings;
  std::vector<std::string> tried;  // what was looked for, and why it could not be when it could not
};

// Errors: of reading, lowering or simulating a case.
Expected<Diagnosis> diagnose(const CaseTable& table);

// The single questions; each adds at most one finding.
Expected<bool> diagnose_memory_unit(const CaseTable& table, const PreparedCases& cases, Diagnosis& diagnosis);
Expected<bool> diagnose_pipeline_memory(const CaseTable& table, Diagnosis& diagnosis);
Expected<bool> diagnose_multi_gpu_slowdown(const CaseTable& table, const PreparedCases& cases,
                                           Diagnosis& diagnosis);
void diagnose_mfu(const CaseTable& table, Diagnosis& diagnosis);

}  // namespace foretrain
