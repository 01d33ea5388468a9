// Any bytes as CSV: never a crash; what is accepted is written and read back to the same cells.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "model/json/csv.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto table = foretrain::parse_csv(std::string_view(reinterpret_cast<const char*>(data), size), "f");
  if (!table) {
    require(!table.error().empty());
    return 0;
  }
  foretrain::Errors errors;
  std::vector<std::string> cells;
  for (std::size_t column = 0; column < table->columns(); ++column)
    cells.push_back(table->header(column).text);
  foretrain::CsvWriter writer(cells);
  for (std::size_t row = 0; row < table->rows(); ++row) {
    cells.clear();
    for (std::size_t column = 0; column < table->columns(); ++column) {
      cells.push_back(table->text(row, column));
      (void)table->number(row, column, errors);
      (void)table->whole_number(row, column, errors);
    }
    writer.add_row(cells);
  }
  const auto again = foretrain::parse_csv(writer.text(), "f");
  require(again.has_value() && again->rows() == table->rows() && again->columns() == table->columns());
  for (std::size_t row = 0; row < table->rows(); ++row) {
    for (std::size_t column = 0; column < table->columns(); ++column) {
      require(again->text(row, column) == table->text(row, column));
    }
  }
  return 0;
}
