#include "sim/device/attention.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {

using enum KernelParameterId;

constexpr std::int64_t kQueryTile = 128;
constexpr std::int64_t kKeyTile = 64;
constexpr std::int64_t kMostTiles = 1024;  // longer sequences are sampled at this many query tiles
constexpr double kTail = 0.5;              // share of a mean unit by which the last SM finishes late
constexpr std::int64_t kWideHead = 128;    // heads above this run from a smaller register budget
constexpr double kBackwardProducts = 2.5;
constexpr double kBackwardTraffic = 2;  // reads dO and O besides Q, K, V; writes three gradients

std::int64_t padded_head(std::int64_t head_dim) {
  for (const std::int64_t size : {32, 64, 96, 128, 192, 256})
    if (head_dim <= size) return size;
  return head_dim;
}

struct KeyRange {
  std::int64_t begin, end;
};
// Keys visible to queries [begin, end); queries are aligned with the end of the keys, as in FlashAttention.
KeyRange visible(const AttentionShape& shape, AttentionWindow window, std::int64_t begin, std::int64_t end) {
  const std::int64_t shift = shape.key_length - shape.query_length;
  const std::int64_t first =
      window.left < 0 ? 0 : std::clamp<std::int64_t>(begin + shift - window.left, 0, shape.key_length);
  const std::int64_t last = window.right < 0
                                ? shape.key_length
                                : std::clamp<std::int64_t>(end + shift + window.right, 0, shape.key_length);
  return {first, std::max(first, last)};
}

struct Units {
  double key_tiles = 0;  // of one head, over all query tiles
  double longest = 0;
  double count = 0;
};
Units count_units(const AttentionShape& shape, AttentionWindow window) {
  const std::int64_t tiles = (shape.query_length + kQueryTile - 1) / kQueryTile;
  const std::int64_t stride = (tiles + kMostTiles - 1) / kMostTiles;
  double sampled = 0, key_tiles = 0, longest = 0;
  for (std::int64_t tile = (stride - 1) / 2; tile < tiles; tile += stride) {
    const KeyRange keys =
        visible(shape, window, tile * kQueryTile, std::min((tile + 1) * kQueryTile, shape.query_length));
    const std::int64_t visited = (keys.end + kKeyTile - 1) / kKeyTile - keys.begin / kKeyTile;
    key_tiles += static_cast<double>(visited);
    longest = std::max(longest, static_cast<double>(visited));
    sampled += 1;
  }
  const auto all = static_cast<double>(tiles);
  return {key_tiles * all / sampled, longest, all};
}

bool is_empty(const AttentionShape& shape) {
  return shape.batch < 1 || shape.query_length < 1 || shape.key_length < 1 || shape.heads < 1 ||
         shape.head_dim < 1;
}

}  // namespace

AttentionWindow window_of(const AttentionShape& shape) {
  AttentionWindow window;
  if (shape.window > 0) window = {shape.window, shape.window};
  if (shape.causal) window.right = 0;
  return window;
}

Flops attention_flops(const AttentionShape& shape, AttentionWindow window, AttentionPass pass) {
  if (is_empty(shape)) return Flops{};
  // Pairs are an arithmetic series between the queries at which a bound starts or stops to cut.
  double pairs = 0;
  const std::int64_t stride = std::max<std::int64_t>(1, shape.query_length / (1 << 16));
  std::int64_t counted = 0;
  for (std::int64_t query = stride / 2; query < shape.query_length; query += stride, ++counted) {
    const KeyRange keys = visible(shape, window, query, query + 1);
    pairs += static_cast<double>(keys.end - keys.begin);
  }
  pairs *= static_cast<double>(shape.query_length) / static_cast<double>(counted);
  const double products = 4 * (pass == AttentionPass::backward ? kBackwardProducts : 1.0);
  return Flops(products * pairs * static_cast<double>(shape.batch * shape.heads) *
               static_cast<double>(shape.head_dim));
}

Flops attention_flops(const AttentionShape& shape, AttentionPass pass) {
  return attention_flops(shape, window_of(shape), pass);
}

Time attention_time(const GpuSpec& gpu, const AttentionShape& shape, AttentionWindow window,
                    AttentionPass pass, const KernelParameters& p) {
  if (is_empty(shape) || gpu.sm_count < 1) return Time{};
  const bool backward = pass == AttentionPass::backward;
  const double sms = gpu.sm_count;
  FlopRate peak = shape.dtype == DType::bf16 && gpu.bf16.per_s() > 0 ? gpu.bf16 : gpu.fp16;
  if (shape.dtype == DType::fp32) peak = gpu.tf32.per_s() > 0 ? gpu.tf32 : gpu.fp32;
  const double sm_rate = peak.per_s() * 1e-6 / sms * p[tile_efficiency];
  const std::int64_t head = padded_head(shape.head_dim);
  const double pairs_per_tile = static_cast<double>(kQueryTile * kKeyTile);
  const double products_us = (backward ? kBackwardProducts : 1.0) * 4 * pairs_per_tile *
                             static_cast<double>(head) / sm_rate *
                             (head > kWideHead ? p[wide_head_slowdown] : 1.0);
  const double softmax_us =
      (backward ? 2 : 1) * pairs_per_tile * p[softmax_cycles] / std::max(1.0, gpu.boost_clock_mhz);
  const double per_key_tile = products_us + softmax_us;
  const double clock = gpu.boost_clock_mhz > 0 ? kReferenceClockMhz / gpu.boost_clock_mhz : 1.0;

  const Units units = count_units(shape, window);
  const auto heads = static_cast<double>(shape.batch * shape.heads);
  const double overhead = p[tile_overhead_us] * clock;
  const double longest = units.longest * per_key_tile + overhead;
  const double all = heads * (units.key_tiles * per_key_tile + units.count * overhead);
  const double mean = all / (heads * units.count);
  double compute_us = longest;
  if (heads * units.count > sms) compute_us = std::max(longest, all / sms + kTail * mean);

  const auto kv_heads = static_cast<double>(shape.kv_heads > 0 ? shape.kv_heads : shape.heads);
  const double bytes = 2 * static_cast<double>(shape.batch * shape.head_dim * size_of(shape.dtype)) *
                       (static_cast<double>(shape.query_length * shape.heads) +
                        static_cast<double>(shape.key_length) * kv_heads) *
                       (backward ? kBackwardTraffic : 1.0);
  const double memory_us = bytes / (gpu.memory_bandwidth.bytes_per_s() * 1e-6 * p[memory_efficiency]);
  return Time::from_us(p[launch_us] + std::max(compute_us, memory_us));
}

Time attention_time(const GpuSpec& gpu, const AttentionShape& shape, AttentionPass pass,
                    const KernelParameters& parameters) {
  return attention_time(gpu, shape, window_of(shape), pass, parameters);
}

Time attention_time(const GpuSpec& gpu, const AttentionShape& shape, AttentionPass pass) {
  const KernelKind kind =
      pass == AttentionPass::forward ? KernelKind::attention_forward : KernelKind::attention_backward;
  return attention_time(gpu, shape, pass, default_kernel_parameters(kind, gpu.architecture).parameters);
}

}  // namespace foretrain
