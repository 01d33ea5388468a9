#include "sim/sharing/fair_share.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace foretrain {

FairShare::FairShare(std::span<const double> capacities)
    : capacity_(capacities.begin(), capacities.end()),
      users_(capacities.size()),
      used_(capacities.size(), 0.0),
      weight_(capacities.size(), 0.0),
      left_(capacities.size(), 0.0),
      seen_constraint_(capacities.size(), 0) {}

std::int32_t FairShare::add(std::span<const Use> uses, double weight, double cap) {
  assert(weight > 0);
  std::int32_t handle;
  if (free_.empty()) {
    handle = static_cast<std::int32_t>(activities_.size());
    activities_.emplace_back();
    seen_activity_.push_back(0);
  } else {
    // The lowest free handle, so that handles do not depend on the order of removals.
    const auto lowest = std::min_element(free_.begin(), free_.end());
    handle = *lowest;
    *lowest = free_.back();
    free_.pop_back();
  }
  Activity& activity = activities_[static_cast<std::size_t>(handle)];
  activity.uses.assign(uses.begin(), uses.end());
  activity.weight = weight;
  activity.cap = cap;
  activity.rate = 0;
  activity.live = true;
  for (const Use& use : activity.uses) {
    std::vector<std::int32_t>& users = users_[static_cast<std::size_t>(use.constraint)];
    users.insert(std::lower_bound(users.begin(), users.end(), handle), handle);
    dirty_.push_back(use.constraint);
  }
  if (activity.uses.empty()) lonely_.push_back(handle);
  return handle;
}

void FairShare::remove(std::int32_t handle) {
  Activity& activity = activities_[static_cast<std::size_t>(handle)];
  assert(activity.live);
  for (const Use& use : activity.uses) {
    std::vector<std::int32_t>& users = users_[static_cast<std::size_t>(use.constraint)];
    users.erase(std::lower_bound(users.begin(), users.end(), handle));
    dirty_.push_back(use.constraint);
  }
  std::erase(lonely_, handle);
  activity.live = false;
  activity.rate = 0;
  free_.push_back(handle);
}

void FairShare::set_capacity(std::int32_t constraint, double capacity) {
  capacity_[static_cast<std::size_t>(constraint)] = capacity;
  dirty_.push_back(constraint);
}

double FairShare::rate(std::int32_t activity) const {
  return activities_[static_cast<std::size_t>(activity)].rate;
}

double FairShare::utilisation(std::int32_t constraint) const {
  const std::size_t c = static_cast<std::size_t>(constraint);
  double load = 0;
  for (const std::int32_t a : users_[c]) {
    const Activity& activity = activities_[static_cast<std::size_t>(a)];
    for (const Use& use : activity.uses) {
      if (use.constraint == constraint) load += use.coefficient * activity.rate;
    }
  }
  return capacity_[c] > 0 ? load / capacity_[c] : 0;
}

// The activities and constraints connected to what changed, both ascending.
void FairShare::collect_component() {
  ++stamp_;
  component_.clear();
  constraints_.clear();
  pending_.assign(dirty_.begin(), dirty_.end());
  dirty_.clear();
  while (!pending_.empty()) {
    const std::size_t c = static_cast<std::size_t>(pending_.back());
    pending_.pop_back();
    if (seen_constraint_[c] == stamp_) continue;
    seen_constraint_[c] = stamp_;
    constraints_.push_back(static_cast<std::int32_t>(c));
    for (const std::int32_t a : users_[c]) {
      if (seen_activity_[static_cast<std::size_t>(a)] == stamp_) continue;
      seen_activity_[static_cast<std::size_t>(a)] = stamp_;
      component_.push_back(a);
      for (const Use& use : activities_[static_cast<std::size_t>(a)].uses) pending_.push_back(use.constraint);
    }
  }
  for (const std::int32_t a : lonely_) component_.push_back(a);
  lonely_.clear();
  std::sort(component_.begin(), component_.end());
  std::sort(constraints_.begin(), constraints_.end());
}

std::span<const std::int32_t> FairShare::solve() {
  changed_.clear();
  if (dirty_.empty() && lonely_.empty()) return changed_;
  collect_component();
  for (const std::int32_t c : constraints_) {
    left_[static_cast<std::size_t>(c)] = capacity_[static_cast<std::size_t>(c)];
    weight_[static_cast<std::size_t>(c)] = 0;
  }
  open_.assign(component_.begin(), component_.end());
  before_.resize(component_.size());
  for (std::size_t i = 0; i < component_.size(); ++i) {
    const Activity& activity = activities_[static_cast<std::size_t>(component_[i])];
    before_[i] = activity.rate;
    for (const Use& use : activity.uses) {
      weight_[static_cast<std::size_t>(use.constraint)] += use.coefficient * activity.weight;
    }
  }
  // Progressive filling: `level` is the rate per unit of weight at which the next constraint fills or the
  // next activity reaches its cap; everything fixed at that level leaves, and the rest rises on. Within a
  // relative 1e-12 two levels are one, so that rounding does not split a tie.
  constexpr double kTie = 1e-12;
  while (!open_.empty()) {
    double level = std::numeric_limits<double>::infinity();
    for (const std::int32_t c : constraints_) {
      const std::size_t i = static_cast<std::size_t>(c);
      if (weight_[i] > 0) level = std::min(level, std::max(0.0, left_[i]) / weight_[i]);
    }
    for (const std::int32_t a : open_) {
      const Activity& activity = activities_[static_cast<std::size_t>(a)];
      if (activity.cap > 0) level = std::min(level, activity.cap / activity.weight);
    }
    if (level == std::numeric_limits<double>::infinity()) {  // nothing limits what is left
      for (const std::int32_t a : open_) activities_[static_cast<std::size_t>(a)].rate = level;
      break;
    }
    fixed_.clear();
    rest_.clear();
    for (const std::int32_t a : open_) {
      const Activity& activity = activities_[static_cast<std::size_t>(a)];
      bool full = activity.cap > 0 && activity.cap / activity.weight <= level * (1 + kTie);
      for (const Use& use : activity.uses) {
        const std::size_t i = static_cast<std::size_t>(use.constraint);
        full = full || std::max(0.0, left_[i]) <= level * weight_[i] * (1 + kTie);
      }
      (full ? fixed_ : rest_).push_back(a);
    }
    for (const std::int32_t a : fixed_) {
      Activity& activity = activities_[static_cast<std::size_t>(a)];
      activity.rate = level * activity.weight;
      for (const Use& use : activity.uses) {
        const std::size_t i = static_cast<std::size_t>(use.constraint);
        left_[i] -= use.coefficient * activity.rate;
        weight_[i] -= use.coefficient * activity.weight;
      }
    }
    // Weights are sums of differences: what rounding leaves behind when nobody is left must not limit anyone.
    for (const std::int32_t c : constraints_) used_[static_cast<std::size_t>(c)] = 0;
    for (const std::int32_t a : rest_) {
      for (const Use& use : activities_[static_cast<std::size_t>(a)].uses)
        used_[static_cast<std::size_t>(use.constraint)] = 1;
    }
    for (const std::int32_t c : constraints_) {
      if (used_[static_cast<std::size_t>(c)] == 0) weight_[static_cast<std::size_t>(c)] = 0;
    }
    open_.swap(rest_);
  }
  for (std::size_t i = 0; i < component_.size(); ++i) {
    if (activities_[static_cast<std::size_t>(component_[i])].rate != before_[i])
      changed_.push_back(component_[i]);
  }
  return changed_;
}

}  // namespace foretrain
