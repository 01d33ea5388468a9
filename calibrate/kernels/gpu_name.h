// The preset that a table of measurements means by a GPU's name.
#pragma once

#include <string_view>

#include "model/hardware/gpu.h"

namespace foretrain {

// Knows preset names and the spellings of published tables ("A100-80GB-PCIe", "NVIDIA A30 (56 SM, 933
// GB/s)", "RTX 3090 Ti", "V100"); case, blanks, hyphens and what stands in parentheses do not count. nullptr
// when the name is unknown. A name without a form factor means the most common one ("V100": SXM2 16 GB).
const GpuSpec* gpu_of_table(std::string_view name);

}  // namespace foretrain
