// What verbs print: aligned tables for people, JSON and CSV for programs, errors with their exit code. Data
// goes to stdout, everything else to stderr; colour only on a terminal and without NO_COLOR.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>

#include "model/base/error.h"
#include "model/json/value.h"

namespace foretrain {

// A text table. Columns whose header starts with '<' are left-aligned (without the sign), others
// right-aligned.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : header_(std::move(header)) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  void rule() { rows_.emplace_back(); }  // a line across
  std::string to_text() const;
  std::string to_csv() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

struct OutputOptions {
  std::optional<std::string> json;
  std::optional<std::string> csv;
};
void add_output_options(CLI::App& verb, OutputOptions& options, bool csv = true);

// Prints `text` unless JSON or CSV goes to stdout; writes JSON and CSV where they were asked for.
int write_output(const OutputOptions& options, const std::string& text, const JsonValue& json,
                 const std::string& csv);

// Prints errors to stderr and gives the exit code of the gravest.
int report(const Errors& errors);
int exit_code(const Errors& errors);

void print(std::string_view text);       // to stdout
void print_note(std::string_view text);  // to stderr
bool on_terminal();                      // whether stderr is one: only then is progress shown
bool colour();                           // whether stdout takes colour
std::string bold(std::string_view text);

// A line on stderr that counts up; silent when stderr is not a terminal.
class Progress {
 public:
  Progress(std::string what, std::size_t total);
  ~Progress();
  void step();

 private:
  std::string what_;
  std::size_t total_, done_ = 0;
  bool shown_;
};

// JSON without ceremony: json_object({{"n", json(3.0)}, ...}).
JsonValue json(double value);
JsonValue json(std::int64_t value);
JsonValue json(bool value);
JsonValue json(std::string_view value);
inline JsonValue json(const char* value) { return json(std::string_view(value)); }
inline JsonValue json(const std::string& value) { return json(std::string_view(value)); }
JsonValue json_object(const std::vector<std::pair<std::string, JsonValue>>& members);

}  // namespace foretrain
