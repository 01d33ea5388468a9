#include "sim/network/collective_cost_bounds.h"

#include <bit>

namespace foretrain {
namespace {

// Seconds to carry factor * bytes, rounded up, with the edge cases of transfer_time().
Time carried(double factor, Bytes bytes, Bandwidth bandwidth) {
  if (bytes.count() <= 0 || factor <= 0) return Time{};
  if (!(bandwidth.bytes_per_s() > 0)) return Time::max();
  return detail::ceil_ps(factor * static_cast<double>(bytes.count()) / bandwidth.bytes_per_s());
}

Time saturating_sum(Time a, Time b) { return a > Time::max() - b ? Time::max() : a + b; }

ClosedForm assembled(std::int32_t steps, Time step_latency, Time bandwidth) {
  ClosedForm form;
  form.steps = steps;
  form.latency = step_latency * std::int64_t{steps};
  form.bandwidth = bandwidth;
  form.total = saturating_sum(form.latency, form.bandwidth);
  return form;
}

}  // namespace

double bus_factor(CollectiveKind kind, std::int32_t ranks) {
  if (ranks <= 1) return 0;
  const double n = ranks;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
      return (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_recv:
      return 1;
  }
  return 1;
}

Time bandwidth_lower_bound(CollectiveKind kind, Bytes bytes, std::int32_t ranks, Bandwidth bandwidth) {
  return carried(bus_factor(kind, ranks), bytes, bandwidth);
}

Time in_switch_lower_bound(CollectiveKind kind, Bytes bytes, std::int32_t ranks, Bandwidth bandwidth) {
  double factor = bus_factor(kind, ranks);
  if (kind == CollectiveKind::all_reduce && ranks > 2) {
    const double n = ranks;
    factor = (n + 1) / n;
  }
  return carried(factor, bytes, bandwidth);
}

std::int32_t ring_steps(CollectiveKind kind, std::int32_t ranks) {
  if (ranks <= 1) return 0;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return 2 * (ranks - 1);
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      return ranks - 1;
    case CollectiveKind::send_recv:
      return 1;
  }
  return 1;
}

std::int32_t tree_depth(std::int32_t ranks) {
  if (ranks <= 1) return 0;
  return static_cast<std::int32_t>(std::bit_width(static_cast<std::uint32_t>(ranks - 1)));
}

ClosedForm ring_closed_form(CollectiveKind kind, Bytes bytes, std::int32_t ranks, const UniformLink& link) {
  if (bytes.count() <= 0) return {};
  return assembled(ring_steps(kind, ranks), link.latency,
                   carried(bus_factor(kind, ranks), bytes, link.bandwidth));
}

std::optional<ClosedForm> tree_closed_form(CollectiveKind kind, Bytes bytes, std::int32_t ranks,
                                           const UniformLink& link) {
  const bool all_reduce = kind == CollectiveKind::all_reduce;
  if (!all_reduce && kind != CollectiveKind::broadcast && kind != CollectiveKind::reduce) return std::nullopt;
  if (bytes.count() <= 0 || ranks <= 1) return ClosedForm{};
  const std::int32_t passes = all_reduce ? 2 : 1;
  return assembled(passes * tree_depth(ranks), link.latency, carried(passes, bytes, link.bandwidth));
}

}  // namespace foretrain
