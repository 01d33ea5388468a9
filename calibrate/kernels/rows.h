// Measured kernel times from a CSV file. Two forms are read, told apart by their headers:
//   matmul     gpu, op, dtype, m, n, k, and time_us or tflops; optional: batch, layout, notes ("out=fp32",
//              "accumulate=True"). Fused attention (op sdp_fwd, sdp_bwd) and grouped matmul (op group_matmul)
//              have their shape in notes ("seq_len=4096, head_num=32, ..." and "ng=40, M=616, N=.., K=..").
//   attention  gpu, dtype, batch, seq, q_heads, kv_heads, head_dim, causal, time_ms; optional: op,
//   window_left,
//              window_right.
// Rows that the model does not cover are not errors; they come back with the reason.
#pragma once

#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/hardware/gpu.h"
#include "model/ops/op.h"
#include "sim/device/attention.h"
#include "sim/device/kernel_parameters.h"

namespace foretrain {

struct KernelRow {
  std::string gpu_name;  // as written
  const GpuSpec* gpu = nullptr;
  std::string op, dtype;  // as written
  KernelKind kind = KernelKind::matmul_tensor;
  MatmulShape matmul;
  bool accumulate = false;
  AttentionShape attention;
  AttentionWindow window;
  double measured_us = 0;
  int line = 0;
};

struct SkippedRows {
  std::string gpu_name, op, dtype;
  std::string reason;
  std::size_t n = 0;
};

struct KernelTable {
  std::vector<KernelRow> rows;
  std::vector<SkippedRows> skipped;  // in order of first appearance
};

// Errors: the file, its headers, numbers that are not positive and finite, no row that can be used (naming
// the known GPUs when none is known).
Expected<KernelTable> read_kernel_rows(const std::string& path);
Expected<KernelTable> parse_kernel_rows(std::string_view text, const std::string& file);

// Time of the row's kernel under the parameters, in us.
double predicted_us(const KernelRow& row, const KernelParameters& parameters);

}  // namespace foretrain
