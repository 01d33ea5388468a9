#include "model/json/csv.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "model/base/file.h"
#include "model/base/quantity.h"
#include "model/base/text.h"

namespace foretrain {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::size_t kMaxReported = 20;  // ragged rows are usually all wrong in the same way

}  // namespace

class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& file, const CsvLimits& limits)
      : text_(text), file_(file), limits_(limits), cursor_(text) {
    table_.file_ = file;
  }

  Expected<CsvTable> parse() && {
    while (offset_ < text_.size() && !stopped_) read_row();
    if (errors_.empty() && table_.cells_.empty()) add({}, "is empty; expected a header row");
    if (ragged_ > kMaxReported)
      add({}, fmt::format("{} more rows have a wrong number of cells", ragged_ - kMaxReported));
    if (!errors_.empty()) return fail(std::move(errors_));
    return std::move(table_);
  }

 private:
  void add(TextPosition at, std::string message, std::string hint = {}) {
    errors_.push_back(Error{ErrorCode::input, Location{file_, at.line, at.column, {}}, std::move(message),
                            std::move(hint)});
  }
  // Of the offset, which must not lie before the last one asked for.
  TextPosition position(std::size_t offset) {
    cursor_.advance_to(offset);
    return cursor_.position();
  }
  void stop(std::size_t offset, std::string message, std::string hint = {}) {
    add(position_at(text_, offset), std::move(message), std::move(hint));
    stopped_ = true;
  }

  // Bytes of the line end at an offset, 0 for none. A lone carriage return is none.
  std::size_t line_end_at(std::size_t offset) const {
    if (text_.substr(offset).starts_with("\r\n")) return 2;
    return offset < text_.size() && text_[offset] == '\n' ? 1 : 0;
  }

  void read_row() {
    if (const std::size_t blank = line_end_at(offset_)) {
      offset_ += blank;
      return;
    }
    std::vector<CsvCell> row;
    for (;;) {
      CsvCell cell = read_cell();
      if (stopped_) return;
      row.push_back(std::move(cell));
      if (table_.cells_.size() + row.size() > limits_.max_cells) {
        stop(offset_, fmt::format("there are more than {} cells, the most that is read", limits_.max_cells));
        return;
      }
      if (offset_ >= text_.size()) break;
      if (text_[offset_] == ',') {
        ++offset_;
        continue;
      }
      offset_ += line_end_at(offset_);
      break;
    }
    if (table_.columns_ == 0) {
      take_header(std::move(row));
    } else {
      take_row(std::move(row));
    }
  }

  // Leaves offset_ at a comma, a line end or the end of the text.
  CsvCell read_cell() {
    const TextPosition at = position(offset_);
    CsvCell cell{{}, at.line, at.column};
    if (offset_ < text_.size() && text_[offset_] == '"') {
      read_quoted(cell.text);
      return cell;
    }
    const std::size_t end = std::min(text_.find_first_of(",\n\r\"", offset_), text_.size());
    cell.text = std::string(text_.substr(offset_, end - offset_));
    offset_ = end;
    if (end < text_.size() && text_[end] == '"') {
      stop(end, "a quote stands inside an unquoted cell",
           "put the whole cell in quotes and double the quotes inside: \"a \"\"b\"\"\"");
    } else if (end < text_.size() && text_[end] == '\r' && line_end_at(end) == 0) {
      stop(end, "a carriage return stands without a line feed", "save the file with LF or CRLF line ends");
    }
    return cell;
  }

  void read_quoted(std::string& into) {
    const std::size_t start = offset_;
    ++offset_;
    for (;;) {
      const std::size_t quote = text_.find('"', offset_);
      if (quote == std::string_view::npos) {
        stop(start, "the quote is not closed");
        return;
      }
      into += text_.substr(offset_, quote - offset_);
      offset_ = quote + 1;
      if (offset_ >= text_.size() || text_[offset_] != '"') break;
      into += '"';
      ++offset_;
    }
    if (offset_ < text_.size() && text_[offset_] != ',' && line_end_at(offset_) == 0) {
      stop(offset_,
           fmt::format("{} follows a closing quote; expected a comma or the end of the line",
                       in_quotes(text_.substr(offset_, 1))),
           "a quote inside a quoted cell is doubled");
    }
  }

  void take_header(std::vector<CsvCell> row) {
    std::map<std::string, const CsvCell*> seen;
    for (CsvCell& cell : row) {
      cell.text = std::string(trim(cell.text));
      const TextPosition at{cell.line, cell.column};
      if (cell.text.empty()) add(at, "the header of this column is empty");
      const auto [earlier, is_new] = seen.emplace(cell.text, &cell);
      if (!is_new && !cell.text.empty()) {
        add(at, fmt::format("the header {} is there twice; it was first written at {}:{}",
                            in_quotes(cell.text), earlier->second->line, earlier->second->column));
      }
    }
    table_.columns_ = row.size();
    table_.cells_ = std::move(row);
  }

  void take_row(std::vector<CsvCell> row) {
    if (row.size() != table_.columns_) {
      if (++ragged_ <= kMaxReported) {
        add({row.front().line, 1},
            fmt::format("the row has {} cell{}; the header has {}", row.size(), row.size() == 1 ? "" : "s",
                        table_.columns_),
            row.size() > table_.columns_ ? "a cell that contains a comma must be in quotes" : "");
      }
      return;
    }
    std::move(row.begin(), row.end(), std::back_inserter(table_.cells_));
  }

  std::string_view text_;
  std::string file_;
  const CsvLimits& limits_;
  TextCursor cursor_;
  std::size_t offset_ = 0;
  bool stopped_ = false;
  std::size_t ragged_ = 0;
  CsvTable table_;
  Errors errors_;
};

std::optional<std::size_t> CsvTable::find_column(std::string_view name) const {
  for (std::size_t i = 0; i < columns_; ++i) {
    if (cells_[i].text == name) return i;
  }
  return std::nullopt;
}

Expected<std::size_t> CsvTable::require_column(std::string_view name) const {
  if (const auto column = find_column(name)) return *column;
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < columns_; ++i) names.push_back(cells_[i].text);
  const auto near = nearest(name, names);
  return fail(Error{
      ErrorCode::input, Location{file_, columns_ > 0 ? cells_.front().line : 0, 1, {}},
      fmt::format("the column {} is missing", in_quotes(name)),
      near ? fmt::format("is {} meant? Rename it", in_quotes(*near)) : did_you_mean(name, names, "columns")});
}

Location CsvTable::where(std::size_t row, std::size_t column) const {
  const CsvCell& place = cell(row, column);
  return Location{file_, place.line, place.column, header(column).text};
}
Location CsvTable::header_where(std::size_t column) const {
  return Location{file_, header(column).line, header(column).column, header(column).text};
}

std::optional<double> CsvTable::number(std::size_t row, std::size_t column, Errors& errors) const {
  const Expected<double> value = parse_number(text(row, column));
  if (value) return *value;
  for (Error error : value.error()) {
    error.where = where(row, column);
    errors.push_back(std::move(error));
  }
  return std::nullopt;
}

std::optional<std::int64_t> CsvTable::whole_number(std::size_t row, std::size_t column,
                                                   Errors& errors) const {
  const std::string& cell_text = text(row, column);
  const std::string_view digits = trim(cell_text);
  const bool negative = digits.starts_with('-');
  const Expected<std::int64_t> value = parse_count(negative ? digits.substr(1) : digits);
  if (value) return negative ? -*value : *value;
  errors.push_back(Error{ErrorCode::input, where(row, column),
                         fmt::format("is {}; expected a whole number", in_quotes(cell_text)),
                         value.error().front().hint});
  return std::nullopt;
}

Expected<CsvTable> parse_csv(std::string_view text, const std::string& file, const CsvLimits& limits) {
  const auto refuse = [&](TextPosition at, std::string message, std::string hint = {}) {
    return fail(
        Error{ErrorCode::input, Location{file, at.line, at.column, {}}, std::move(message), std::move(hint)});
  };
  if (text.size() > limits.max_bytes) {
    return refuse({0, 0},
                  fmt::format("is {} bytes long; at most {} are read", text.size(), limits.max_bytes));
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (const auto bad = find_invalid_utf8(text)) {
    return refuse(position_at(text, *bad),
                  fmt::format("the byte 0x{:02x} is not valid UTF-8", static_cast<unsigned char>(text[*bad])),
                  "save the file as UTF-8");
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return refuse(position_at(text, nul), "there is a NUL byte; expected text");
  }
  return CsvParser(text, file, limits).parse();
}

Expected<CsvTable> parse_csv_file(const std::string& path, const CsvLimits& limits) {
  const Expected<std::string> text = read_file(path, limits.max_bytes + 3);
  if (!text) return fail(text.error());
  return parse_csv(*text, path, limits);
}

std::string csv_quoted(std::string_view cell) {
  // A byte order mark at the start of a file would be skipped.
  const bool plain = cell.find_first_of(",\"\n\r") == std::string_view::npos &&
                     trim(cell).size() == cell.size() && !cell.starts_with(kByteOrderMark);
  if (plain) return std::string(cell);
  std::string result = "\"";
  for (const char c : cell) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

CsvWriter::CsvWriter(const std::vector<std::string>& header) { add_row(header); }

void CsvWriter::add_row(const std::vector<std::string>& cells) {
  // A row of one empty cell would be a blank line, which readers skip.
  if (cells.size() == 1 && cells.front().empty()) {
    text_ += "\"\"\n";
    return;
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) text_ += ',';
    text_ += csv_quoted(cells[i]);
  }
  text_ += '\n';
}

}  // namespace foretrain
