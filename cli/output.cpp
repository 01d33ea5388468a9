#include "cli/output.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "model/base/file.h"
#include "model/json/csv.h"
#include "model/json/write.h"

namespace foretrain {
namespace {

// Width in code points: what a terminal shows for the texts we print.
std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  bool escape = false;
  for (const char c : text) {
    if (c == '\033') escape = true;
    if (!escape && (static_cast<unsigned char>(c) & 0xC0) != 0x80) ++width;
    if (escape && c == 'm') escape = false;
  }
  return width;
}

bool is_left(const std::string& header) { return header.starts_with('<'); }
std::string plain(const std::string& header) { return is_left(header) ? header.substr(1) : header; }

}  // namespace

std::string TextTable::to_text() const {
  std::vector<std::size_t> widths;
  for (const std::string& cell : header_) widths.push_back(width_of(plain(cell)));
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size() && c < widths.size(); ++c)
      widths[c] = std::max(widths[c], width_of(row[c]));
  }
  std::size_t total = 2 * (widths.empty() ? 0 : widths.size() - 1);
  for (const std::size_t w : widths) total += w;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t c = 0; c < cells.size() && c < widths.size(); ++c) {
      const std::string padding(widths[c] - std::min(widths[c], width_of(cells[c])), ' ');
      if (c > 0) text += "  ";
      text += is_left(header_[c]) ? cells[c] + padding : padding + cells[c];
    }
    while (text.ends_with(' ')) text.pop_back();
    return text + "\n";
  };
  std::vector<std::string> heads;
  for (const std::string& cell : header_) heads.push_back(plain(cell));
  std::string text = line(heads) + std::string(total, '-') + "\n";
  for (const auto& row : rows_) text += row.empty() ? std::string(total, '-') + "\n" : line(row);
  return text;
}

std::string TextTable::to_csv() const {
  std::vector<std::string> heads;
  for (const std::string& cell : header_) heads.push_back(plain(cell));
  CsvWriter writer(heads);
  for (const auto& row : rows_) {
    if (!row.empty()) writer.add_row(row);
  }
  return writer.text();
}

void add_output_options(CLI::App& verb, OutputOptions& options, bool csv) {
  verb.add_option("--json", options.json, "write JSON to this file, or to stdout with -")
      ->type_name("FILE|-");
  if (csv)
    verb.add_option("--csv", options.csv, "write CSV to this file, or to stdout with -")->type_name("FILE|-");
}

int write_output(const OutputOptions& options, const std::string& text, const JsonValue& json_value,
                 const std::string& csv) {
  const bool data_on_stdout = options.json == "-" || options.csv == "-";
  if (!data_on_stdout) print(text);
  const auto write = [](const std::string& target, const std::string& content) {
    if (target == "-") {
      print(content);
      return 0;
    }
    const auto written = write_file_atomic(target, content);
    return written ? 0 : report(written.error());
  };
  int code = 0;
  if (options.json) code = std::max(code, write(*options.json, to_text(json_value)));
  if (options.csv) code = std::max(code, write(*options.csv, csv));
  return code;
}

int exit_code(const Errors& errors) {
  int code = 0;
  for (const Error& error : errors) {
    int one = 2;
    switch (error.code) {
      case ErrorCode::input:
      case ErrorCode::usage:
        one = 2;
        break;
      case ErrorCode::infeasible:
        one = 1;
        break;
      case ErrorCode::io:
        one = 3;
        break;
      case ErrorCode::internal:
        one = 70;
        break;
    }
    code = std::max(code, one);
  }
  return code;
}

int report(const Errors& errors) {
  print_note(to_text(errors) + "\n");
  if (errors.size() > 1) print_note(fmt::format("{} errors\n", errors.size()));
  return exit_code(errors);
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }
void print_note(std::string_view text) {
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

bool on_terminal() { return isatty(STDERR_FILENO) != 0; }

bool colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) != 0 && (no_colour == nullptr || *no_colour == '\0');
}

std::string bold(std::string_view text) {
  return colour() ? fmt::format("\033[1m{}\033[0m", text) : std::string(text);
}

Progress::Progress(std::string what, std::size_t total)
    : what_(std::move(what)), total_(total), shown_(on_terminal()) {}

Progress::~Progress() {
  if (shown_ && done_ > 0) std::fprintf(stderr, "\r\033[K");
}

void Progress::step() {
  ++done_;
  if (!shown_) return;
  std::fprintf(stderr, "\r\033[K%s %zu/%zu", what_.c_str(), done_, total_);
  std::fflush(stderr);
}

JsonValue json(double value) { return JsonValue::make_number(value); }
JsonValue json(std::int64_t value) { return JsonValue::make_integer(value); }
JsonValue json(bool value) { return JsonValue::make_bool(value); }
JsonValue json(std::string_view value) { return JsonValue::make_string(std::string(value)); }

JsonValue json_object(const std::vector<std::pair<std::string, JsonValue>>& members) {
  JsonValue object = JsonValue::make_object();
  for (const auto& [name, value] : members) object.set(name, value);
  return object;
}

}  // namespace foretrain
