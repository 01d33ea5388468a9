// Any bytes as a table of kernel times: rows that the model takes finite, positive time for, or an error.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "calibrate/kernels/rows.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = foretrain::parse_kernel_rows(text, "fuzz.csv");
  if (!table) {
    if (table.error().empty()) std::abort();
    return 0;
  }
  for (const foretrain::KernelRow& row : table->rows) {
    const auto& set = foretrain::default_kernel_parameters(row.kind, row.gpu->architecture);
    if (!(foretrain::predicted_us(row, set.parameters) > 0) || !(row.measured_us > 0)) std::abort();
  }
  return 0;
}
