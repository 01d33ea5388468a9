#include "calibrate/kernels/rows.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "calibrate/kernels/gpu_name.h"
#include "model/base/file.h"
#include "model/base/quantity.h"
#include "model/base/text.h"
#include "model/json/csv.h"
#include "sim/device/matmul.h"

namespace foretrain {
namespace {

constexpr double kLargestExtent = 1e9;
constexpr double kLeastTimeUs = 1e-3;
constexpr double kLargestTimeUs = 1e12;

// "key=value" of a notes cell: "ng=40, M=616, dtype=bf16" or "accumulate=True out=fp32".
std::optional<std::string_view> note(std::string_view notes, std::string_view key) {
  for (std::size_t at = notes.find(key); at != std::string_view::npos; at = notes.find(key, at + 1)) {
    const bool starts = at == 0 || notes[at - 1] == ' ' || notes[at - 1] == ',';
    const std::size_t value = at + key.size();
    if (!starts || value >= notes.size() || notes[value] != '=') continue;
    const std::size_t end = notes.find_first_of(", ", value + 1);
    return notes.substr(value + 1, end == std::string_view::npos ? end : end - value - 1);
  }
  return std::nullopt;
}

std::optional<std::int64_t> whole_note(std::string_view notes, std::string_view key) {
  const auto text = note(notes, key);
  if (!text) return std::nullopt;
  const auto value = parse_count(*text);
  if (!value || *value < 1 || *value > static_cast<std::int64_t>(kLargestExtent)) return std::nullopt;
  return *value;
}

// How a dtype cell computes; nothing when it is not modelled.
struct Arithmetic {
  DType input;
  bool tensor_cores;
};
std::optional<Arithmetic> arithmetic_of(std::string_view text) {
  const std::string name = to_lower(text);
  if (name.find("tf32") != std::string::npos) return Arithmetic{DType::fp32, true};
  if (name.rfind("fp16", 0) == 0 || name == "float16" || name == "half") return Arithmetic{DType::fp16, true};
  if (name.rfind("bf16", 0) == 0 || name == "bfloat16") return Arithmetic{DType::bf16, true};
  if (name == "fp32" || name == "float32" || name == "float") return Arithmetic{DType::fp32, false};
  return std::nullopt;
}

class Reader {
 public:
  explicit Reader(const CsvTable& table) : table_(table) {}

  Expected<KernelTable> read() {
    const bool attention =
        table_.find_column("seq").has_value() && table_.find_column("head_dim").has_value();
    if (attention) {
      require({"gpu", "dtype", "batch", "seq", "q_heads", "kv_heads", "head_dim", "causal", "time_ms"});
    } else {
      require({"gpu", "op", "dtype", "m", "n", "k"});
      if (!table_.find_column("time_us") && !table_.find_column("tflops"))
        errors_.push_back(Error{ErrorCode::input,
                                {table_.file(), 1, 1, {}},
                                "has neither a column time_us nor a column tflops; expected one of them",
                                {}});
    }
    if (!errors_.empty()) return fail(std::move(errors_));
    for (std::size_t row = 0; row < table_.rows(); ++row) attention ? read_attention(row) : read_matmul(row);
    if (!errors_.empty()) return fail(std::move(errors_));
    if (result_.rows.empty()) return fail(nothing_usable());
    return std::move(result_);
  }

 private:
  void require(std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names)
      if (auto column = table_.require_column(name); !column)
        for (Error& error : column.error()) errors_.push_back(std::move(error));
  }

  std::string_view text(std::size_t row, std::string_view column) const {
    const auto index = table_.find_column(column);
    return index ? trim(table_.text(row, *index)) : std::string_view{};
  }

  // A positive number; nothing when the cell is empty or the column missing. Otherwise an error.
  std::optional<double> positive(std::size_t row, std::string_view column, double most) {
    const auto index = table_.find_column(column);
    if (!index || trim(table_.text(row, *index)).empty()) return std::nullopt;
    const auto value = table_.number(row, *index, errors_);
    if (!value) return std::nullopt;
    if (*value > 0 && *value <= most) return value;
    errors_.push_back(Error{ErrorCode::input,
                            table_.where(row, *index),
                            "is " + table_.text(row, *index) + "; expected a number above 0" +
                                (*value > most ? " (this one is impossibly large)" : ""),
                            {}});
    return std::nullopt;
  }
  std::optional<std::int64_t> extent(std::size_t row, std::string_view column) {
    const auto value = positive(row, column, kLargestExtent);
    if (!value) return std::nullopt;
    if (*value == static_cast<double>(static_cast<std::int64_t>(*value)))
      return static_cast<std::int64_t>(*value);
    const std::size_t index = *table_.find_column(column);
    errors_.push_back(Error{ErrorCode::input,
                            table_.where(row, index),
                            "is " + table_.text(row, index) + "; expected a whole number from 1",
                            {}});
    return std::nullopt;
  }

  void skip(std::size_t row, std::string reason) {
    const std::string gpu(text(row, "gpu")), op(text(row, "op")), dtype(text(row, "dtype"));
    for (SkippedRows& known : result_.skipped)
      if (known.gpu_name == gpu && known.op == op && known.dtype == dtype && known.reason == reason) {
        ++known.n;
        return;
      }
    result_.skipped.push_back({gpu, op, dtype, std::move(reason), 1});
  }

  // Fills what all forms share; false when the row cannot be used.
  bool start(std::size_t row, KernelRow& out, Arithmetic& arithmetic) {
    out.gpu_name = std::string(text(row, "gpu"));
    out.op = std::string(text(row, "op"));
    out.dtype = std::string(text(row, "dtype"));
    out.line = table_.cell(row, 0).line;
    out.gpu = gpu_of_table(out.gpu_name);
    if (out.gpu == nullptr) {
      unknown_gpu_ = out.gpu_name;
      skip(row, "no preset of this GPU");
      return false;
    }
    const auto known = arithmetic_of(out.dtype);
    if (!known) {
      skip(row, "arithmetic of this dtype is not modelled");
      return false;
    }
    arithmetic = *known;
    return true;
  }

  void read_matmul(std::size_t row) {
    KernelRow out;
    Arithmetic arithmetic{};
    if (!start(row, out, arithmetic)) return;
    const std::string_view notes = text(row, "notes");
    const std::string op = to_lower(out.op);
    if (op.rfind("sdp", 0) == 0) return read_noted_attention(row, out, arithmetic, notes);

    MatmulShape& shape = out.matmul;
    std::optional<std::int64_t> batch, m, n, k;
    if (op == "group_matmul") {
      batch = whole_note(notes, "ng");
      m = whole_note(notes, "M");
      n = whole_note(notes, "N");
      k = whole_note(notes, "K");
    } else {
      batch = extent(row, "batch");
      m = extent(row, "m");
      n = extent(row, "n");
      k = extent(row, "k");
    }
    if (!m || !n || !k) return skip(row, "no matmul shape (m, n, k)");
    shape.batch = batch.value_or(1);
    shape.m = *m;
    shape.n = *n;
    shape.k = *k;
    shape.input = arithmetic.input;
    shape.tensor_cores = arithmetic.tensor_cores;
    shape.output = arithmetic.input;
    const auto written = note(notes, op == "group_matmul" ? "out_dtype" : "out");
    if (written)
      if (const auto output = arithmetic_of(*written)) shape.output = output->input;
    out.accumulate = note(notes, "accumulate") == "True";
    const std::string layout = to_lower(text(row, "layout"));
    shape.layout = layout == "nt"   ? MatmulLayout::nt
                   : layout == "tn" ? MatmulLayout::tn
                   : layout == "tt" ? MatmulLayout::tt
                                    : MatmulLayout::nn;
    out.kind = matmul_kind(*out.gpu, shape);
    const double flops = 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) *
                         static_cast<double>(shape.n) * static_cast<double>(shape.k);
    add(row, std::move(out), flops);
  }

  void read_noted_attention(std::size_t row, KernelRow out, Arithmetic arithmetic, std::string_view notes) {
    const auto batch = whole_note(notes, "batch"), length = whole_note(notes, "seq_len");
    const auto heads = whole_note(notes, "head_num"), kv_heads = whole_note(notes, "kv_head_num");
    const auto query_key = whole_note(notes, "qk_head_dim"), value = whole_note(notes, "v_head_dim");
    if (!batch || !length || !heads || !kv_heads || !query_key || !value)
      return skip(row, "no attention shape in notes");
    const bool backward = to_lower(out.op).find("bwd") != std::string::npos;
    AttentionShape& shape = out.attention;
    shape.batch = *batch;
    shape.query_length = shape.key_length = *length;
    shape.heads = *heads;
    shape.kv_heads = *kv_heads;
    // The kernels pad both to one size.
    shape.head_dim = std::max(*query_key, *value);
    shape.dtype = arithmetic.input;
    shape.causal = true;
    out.window = window_of(shape);
    out.kind = backward ? KernelKind::attention_backward : KernelKind::attention_forward;
    // These tables count the whole square although the mask is causal (their rates exceed the peak).
    const double flops = 2.0 * static_cast<double>(*batch * *heads) * static_cast<double>(*length) *
                         static_cast<double>(*length) * static_cast<double>(*query_key + *value) *
                         (backward ? 2.5 : 1.0);
    add(row, std::move(out), flops);
  }

  void read_attention(std::size_t row) {
    KernelRow out;
    Arithmetic arithmetic{};
    if (!start(row, out, arithmetic)) return;
    const auto batch = extent(row, "batch"), length = extent(row, "seq"), heads = extent(row, "q_heads");
    const auto kv_heads = extent(row, "kv_heads"), head_dim = extent(row, "head_dim");
    if (!batch || !length || !heads || !kv_heads || !head_dim) return skip(row, "no attention shape");
    AttentionShape& shape = out.attention;
    shape.batch = *batch;
    shape.query_length = shape.key_length = *length;
    shape.heads = *heads;
    shape.kv_heads = *kv_heads;
    shape.head_dim = *head_dim;
    shape.dtype = arithmetic.input;
    shape.causal = text(row, "causal") == "1" || to_lower(text(row, "causal")) == "true";
    out.window = {window_side(row, "window_left"), shape.causal ? 0 : window_side(row, "window_right")};
    const bool backward = to_lower(out.op).find("bwd") != std::string::npos ||
                          to_lower(out.op).find("backward") != std::string::npos;
    out.kind = backward ? KernelKind::attention_backward : KernelKind::attention_forward;
    const auto ms = positive(row, "time_ms", kLargestTimeUs);
    if (!ms) return skip(row, "no time");
    out.measured_us = *ms * 1e3;
    keep(row, std::move(out));
  }

  std::int64_t window_side(std::size_t row, std::string_view column) {
    const auto index = table_.find_column(column);
    if (!index || trim(table_.text(row, *index)).empty()) return -1;
    const auto value = table_.whole_number(row, *index, errors_);
    return value ? std::clamp<std::int64_t>(*value, -1, static_cast<std::int64_t>(kLargestExtent)) : -1;
  }

  void add(std::size_t row, KernelRow out, double flops) {
    const auto time = positive(row, "time_us", kLargestTimeUs);
    const auto rate = positive(row, "tflops", 1e9);
    if (time) {
      out.measured_us = *time;
    } else if (rate) {
      out.measured_us = flops / *rate * 1e-6;
    } else {
      return skip(row, "neither time nor rate");
    }
    keep(row, std::move(out));
  }

  void keep(std::size_t row, KernelRow out) {
    if (!(out.measured_us >= kLeastTimeUs) || !(out.measured_us <= kLargestTimeUs))
      return skip(row, "no kernel takes less than a nanosecond or more than eleven days");
    result_.rows.push_back(std::move(out));
  }

  Errors nothing_usable() const {
    std::string message = "has no row that can be validated";
    std::string hint;
    if (!unknown_gpu_.empty()) {
      message += "; GPU " + in_quotes(unknown_gpu_) + " is not known";
      hint = "known GPUs:";
      for (const GpuSpec& gpu : gpu_presets()) hint += " " + gpu.name;
    } else if (!result_.skipped.empty()) {
      message += ": " + result_.skipped.front().reason;
    }
    return {Error{ErrorCode::input, {table_.file(), 0, 0, {}}, std::move(message), std::move(hint)}};
  }

  const CsvTable& table_;
  KernelTable result_;
  Errors errors_;
  std::string unknown_gpu_;
};

}  // namespace

Expected<KernelTable> parse_kernel_rows(std::string_view text, const std::string& file) {
  auto table = parse_csv(text, file);
  if (!table) return fail(std::move(table.error()));
  return Reader(*table).read();
}

Expected<KernelTable> read_kernel_rows(const std::string& path) {
  auto text = read_file(path);
  if (!text) return fail(std::move(text.error()));
  return parse_kernel_rows(*text, path);
}

double predicted_us(const KernelRow& row, const KernelParameters& parameters) {
  switch (row.kind) {
    case KernelKind::matmul_ordinary:
    case KernelKind::matmul_tensor:
      return choose_matmul(*row.gpu, row.matmul, parameters, row.accumulate).total_us;
    case KernelKind::attention_forward:
      return attention_time(*row.gpu, row.attention, row.window, AttentionPass::forward, parameters).us();
    case KernelKind::attention_backward:
      return attention_time(*row.gpu, row.attention, row.window, AttentionPass::backward, parameters).us();
  }
  return 0;
}

}  // namespace foretrain
