#include "calibrate/collectives/sweeps.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "model/base/text.h"
#include "model/json/csv.h"

namespace foretrain {
namespace {

constexpr std::array<std::string_view, 6> kNeeded{"collective", "gpu",        "n_gpus",
                                                  "nodes",      "size_bytes", "time_us_oop"};
constexpr std::array<std::string_view, 10> kOptional{
    "id",    "source",          "intra_link",    "inter_link",    "nccl",
    "dtype", "time_us_inplace", "busbw_GBs_oop", "algbw_GBs_oop", "notes"};

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMostGpus = 1'000'000;
constexpr double kLongestUs = 1e12;

// nccl-tests writes some kinds in one word.
std::optional<CollectiveKind> kind_named(std::string_view name) {
  if (name == "alltoall") return CollectiveKind::all_to_all;
  if (name == "sendrecv") return CollectiveKind::send_recv;
  for (const auto kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                          CollectiveKind::reduce_scatter, CollectiveKind::broadcast, CollectiveKind::reduce,
                          CollectiveKind::all_to_all, CollectiveKind::send_recv}) {
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool says_nvlink(std::string_view link) {
  const std::string lower = to_lower(link);
  if (contains(lower, "no nvlink")) return false;
  return contains(lower, "nvlink") || contains(lower, "nvswitch");
}

bool says_host_staged(std::string_view link) {
  const std::string lower = to_lower(link);
  return contains(lower, "no p2p") || contains(lower, "via host") || contains(lower, "shm");
}

// Reads the table's rows; collects every error.
class Reader {
 public:
  explicit Reader(const CsvTable& table) : table_(table) {}

  Expected<std::vector<CollectiveSweep>> read() {
    check_header();
    if (!errors_.empty()) return fail(std::move(errors_));
    if (table_.rows() == 0) {
      return fail(Error{ErrorCode::input, table_.header_where(0), "has no rows; expected measurements", {}});
    }
    for (std::size_t row = 0; row < table_.rows(); ++row) read_row(row);
    if (!errors_.empty()) return fail(std::move(errors_));
    for (auto& sweep : sweeps_) {
      std::stable_sort(sweep.points.begin(), sweep.points.end(),
                       [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    }
    return std::move(sweeps_);
  }

 private:
  void check_header() {
    for (const auto name : kNeeded) {
      const auto column = table_.require_column(name);
      if (!column) errors_.insert(errors_.end(), column.error().begin(), column.error().end());
    }
    std::vector<std::string_view> known(kNeeded.begin(), kNeeded.end());
    known.insert(known.end(), kOptional.begin(), kOptional.end());
    for (std::size_t column = 0; column < table_.columns(); ++column) {
      const std::string& name = table_.header(column).text;
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      errors_.push_back(Error{ErrorCode::input, table_.header_where(column),
                              fmt::format("is {}; expected a column of a collective sweep", in_quotes(name)),
                              did_you_mean(name, known, "columns")});
    }
  }

  // "" where the table has no such column.
  std::string text(std::size_t row, std::string_view name) const {
    const auto column = table_.find_column(name);
    return column ? std::string(trim(table_.text(row, *column))) : std::string();
  }

  std::optional<std::int64_t> whole(std::size_t row, std::string_view name, std::int64_t low,
                                    std::int64_t high) {
    const std::size_t column = *table_.find_column(name);
    const auto value = table_.whole_number(row, column, errors_);
    if (!value || (*value >= low && *value <= high)) return value;
    errors_.push_back(Error{ErrorCode::input,
                            table_.where(row, column),
                            fmt::format("is {}; expected a whole number from {} to {}", *value, low, high),
                            {}});
    return std::nullopt;
  }

  std::optional<double> positive_us(std::size_t row, std::string_view name) {
    const std::size_t column = *table_.find_column(name);
    const auto value = table_.number(row, column, errors_);
    if (!value || (*value > 0 && *value <= kLongestUs)) return value;
    errors_.push_back(Error{ErrorCode::input,
                            table_.where(row, column),
                            fmt::format("is {}; expected microseconds above 0 and up to 1e12", *value),
                            {}});
    return std::nullopt;
  }

  void read_row(std::size_t row) {
    const std::string kind_name = text(row, "collective");
    const auto kind = kind_named(kind_name);
    if (!kind) {
      constexpr std::array<std::string_view, 7> names{
          "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "sendrecv"};
      errors_.push_back(Error{ErrorCode::input, table_.where(row, *table_.find_column("collective")),
                              fmt::format("is {}; expected a collective", in_quotes(kind_name)),
                              did_you_mean(kind_name, names, "collectives")});
    }
    const std::string gpu = text(row, "gpu");
    if (gpu.empty()) {
      errors_.push_back(Error{ErrorCode::input,
                              table_.where(row, *table_.find_column("gpu")),
                              "is empty; expected the name of a GPU",
                              {}});
    }
    const auto gpus = whole(row, "n_gpus", 2, kMostGpus);
    const auto nodes = whole(row, "nodes", 1, kMostGpus);
    const auto bytes = whole(row, "size_bytes", 1, kMostBytes);
    const auto time_us = positive_us(row, "time_us_oop");
    if (gpus && nodes && (*gpus < *nodes || *gpus % *nodes != 0)) {
      errors_.push_back(Error{ErrorCode::input,
                              table_.where(row, *table_.find_column("nodes")),
                              fmt::format("is {}; expected a divisor of n_gpus, which is {}", *nodes, *gpus),
                              {}});
      return;
    }
    if (!kind || gpu.empty() || !gpus || !nodes || !bytes || !time_us) return;

    CollectiveSweep sweep;
    sweep.source = text(row, "source");
    sweep.gpu = gpu;
    sweep.intra_link = text(row, "intra_link");
    sweep.inter_link = text(row, "inter_link");
    sweep.library = text(row, "nccl");
    sweep.dtype = text(row, "dtype");
    sweep.kind = *kind;
    sweep.group.ranks = static_cast<std::int32_t>(*gpus);
    sweep.group.nodes = static_cast<std::int32_t>(*nodes);
    sweep.group.nvlink = says_nvlink(sweep.intra_link);
    sweep.host_staged = says_host_staged(sweep.intra_link);
    const std::string key = sweep.machine_key() + '\x1f' + std::string(name_of(*kind)) + '\x1f' + sweep.dtype;
    const auto [place, added] = index_.try_emplace(key, sweeps_.size());
    if (added) sweeps_.push_back(std::move(sweep));
    sweeps_[place->second].points.push_back({text(row, "id"), *bytes, *time_us});
  }

  const CsvTable& table_;
  Errors errors_;
  std::vector<CollectiveSweep> sweeps_;
  std::map<std::string, std::size_t> index_;
};

}  // namespace

std::size_t CollectiveSweep::distinct_sizes() const {
  std::set<std::int64_t> sizes;
  for (const auto& point : points) sizes.insert(point.bytes);
  return sizes.size();
}

std::string CollectiveSweep::machine_key() const {
  return fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}", source, gpu, group.ranks, group.nodes,
                     intra_link, inter_link, library);
}

Expected<std::vector<CollectiveSweep>> read_collective_sweeps(const CsvTable& table) {
  return Reader(table).read();
}

Expected<std::vector<CollectiveSweep>> read_collective_sweeps(const std::string& path) {
  const auto table = parse_csv_file(path);
  if (!table) return fail(table.error());
  return read_collective_sweeps(*table);
}

}  // namespace foretrain
