// Strict CSV (RFC 4180) in and out. A header row, quoted cells with doubled quotes, LF or CRLF, a UTF-8 byte
// order mark is skipped, blank lines are skipped. Every cell knows its line and column. All ragged rows are
// reported, not only the first. Value types; safe to read from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.h"

namespace foretrain {

struct CsvLimits {
  std::size_t max_bytes = std::size_t{256} << 20;
  std::size_t max_cells = 20'000'000;
};

struct CsvCell {
  std::string text;
  int line = 0;
  int column = 0;  // code points from 1
};

class CsvTable {
 public:
  const std::string& file() const { return file_; }
  std::size_t rows() const { return columns() == 0 ? 0 : cells_.size() / columns() - 1; }
  std::size_t columns() const { return columns_; }
  // Cells of row 0.. (the header is not a row).
  const CsvCell& cell(std::size_t row, std::size_t column) const {
    return cells_[(row + 1) * columns_ + column];
  }
  const std::string& text(std::size_t row, std::size_t column) const { return cell(row, column).text; }
  const CsvCell& header(std::size_t column) const { return cells_[column]; }
  std::optional<std::size_t> find_column(std::string_view name) const;
  // The column, or an error that names the nearest header.
  Expected<std::size_t> require_column(std::string_view name) const;

  // Place of a cell; the path is its column's header.
  Location where(std::size_t row, std::size_t column) const;
  Location header_where(std::size_t column) const;

  // The cell as a finite number / whole number; else nothing, and an error with the cell's place. Spaces
  // around the number are allowed; an empty cell is an error (test text().empty() first where it is not).
  std::optional<double> number(std::size_t row, std::size_t column, Errors& errors) const;
  std::optional<std::int64_t> whole_number(std::size_t row, std::size_t column, Errors& errors) const;

 private:
  friend class CsvParser;
  std::string file_;
  std::size_t columns_ = 0;
  std::vector<CsvCell> cells_;  // row-major, header first
};

// `file` is the name shown in messages. Errors: empty file, empty or duplicate header, ragged row, a quote in
// the wrong place or never closed, a bare carriage return, NUL, invalid UTF-8, the limits.
Expected<CsvTable> parse_csv(std::string_view text, const std::string& file, const CsvLimits& limits = {});
Expected<CsvTable> parse_csv_file(const std::string& path, const CsvLimits& limits = {});

// Rows of text with the quoting that RFC 4180 needs, LF line ends.
class CsvWriter {
 public:
  explicit CsvWriter(const std::vector<std::string>& header);
  void add_row(const std::vector<std::string>& cells);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};
std::string csv_quoted(std::string_view cell);

}  // namespace foretrain
