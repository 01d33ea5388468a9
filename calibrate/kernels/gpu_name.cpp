#include "calibrate/kernels/gpu_name.h"

#include <array>
#include <string>
#include <utility>

namespace foretrain {
namespace {

// Keys as simplified() leaves them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 26> kSpellings{{
    {"a100", "a100_40_sxm"},
    {"a100sxm", "a100_80_sxm"},
    {"a100pcie", "a100_80_pcie"},
    {"a10080gb", "a100_80_sxm"},
    {"a10080gbpcie", "a100_80_pcie"},
    {"a10080gbsxm", "a100_80_sxm"},
    {"a10040gb", "a100_40_sxm"},
    {"a10040gbpcie", "a100_40_pcie"},
    {"a10040gbsxm", "a100_40_sxm"},
    {"b200sxm", "b200"},
    {"b300sxm", "b300"},
    {"h100", "h100_sxm"},
    {"h100sxm", "h100_sxm"},
    {"h100sxm5", "h100_sxm"},
    {"h200sxm", "h200"},
    {"v100", "v100_sxm2_16"},
    {"v10032gb", "v100_sxm2_32"},
    {"v10016gb", "v100_sxm2_16"},
    {"v100sxm2", "v100_sxm2_16"},
    {"v100pcie", "v100_pcie_16"},
    {"titanx", "titanx_maxwell"},
    {"teslat4", "t4"},
    {"gtx1080ti", "1080ti"},
    {"geforcegtx1080ti", "1080ti"},
    {"rtxa6000", "a6000"},
    {"p100pcie", "p100"},
}};

std::string simplified(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, name.find('('))) {
    if (c >= 'A' && c <= 'Z') text += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) text += c;
  }
  for (const std::string_view maker : {"nvidia", "geforce", "tesla"})
    if (text.size() > maker.size() && text.compare(0, maker.size(), maker) == 0) text.erase(0, maker.size());
  return text;
}

}  // namespace

const GpuSpec* gpu_of_table(std::string_view name) {
  const std::string key = simplified(name);
  if (key.empty()) return nullptr;
  for (const auto& [spelling, preset] : kSpellings)
    if (key == spelling) return find_gpu(preset);
  for (const GpuSpec& gpu : gpu_presets())
    if (key == simplified(gpu.name) || key == simplified(gpu.full_name)) return &gpu;
  return nullptr;
}

}  // namespace foretrain
