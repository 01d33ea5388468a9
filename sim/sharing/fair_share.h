// Weighted max-min fair sharing of capacities among activities. Pure: no clock, no events, no allocation
// after the first call of a given size. Deterministic.
//
// Activity i runs at rate x_i >= 0 and uses coefficient c_il * x_i of constraint l. Rates rise together
// in proportion to their weights until a constraint is full or an activity reaches its cap; those
// concerned are then fixed and the rest go on (progressive filling).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace foretrain {

class FairShare {
 public:
  struct Use {
    std::int32_t constraint;
    double coefficient;  // > 0
  };
  explicit FairShare(std::span<const double> capacities);

  // Adds an activity and returns its handle; cap <= 0 means no cap.
  std::int32_t add(std::span<const Use> uses, double weight = 1.0, double cap = 0.0);
  void remove(std::int32_t activity);
  void set_capacity(std::int32_t constraint, double capacity);
  // Recomputes the rates of the activities connected to what changed since the last call; returns the
  // handles whose rate changed, ascending.
  std::span<const std::int32_t> solve();
  double rate(std::int32_t activity) const;
  // Used share of a constraint, 0..1.
  double utilisation(std::int32_t constraint) const;

 private:
  struct Activity {
    std::vector<Use> uses;
    double weight = 1, cap = 0, rate = 0;
    bool live = false;
  };
  void collect_component();

  std::vector<double> capacity_;
  std::vector<Activity> activities_;
  std::vector<std::vector<std::int32_t>> users_;  // activities per constraint, ascending
  std::vector<std::int32_t> free_, changed_;
  std::vector<std::int32_t> dirty_;   // constraints whose users or capacity changed
  std::vector<std::int32_t> lonely_;  // new activities that use no constraint
  // Scratch of solve(), kept to avoid allocation.
  std::vector<double> used_, weight_, left_, before_;
  std::vector<std::int32_t> component_, constraints_, pending_, open_, fixed_, rest_;
  std::vector<std::uint32_t> seen_constraint_, seen_activity_;
  std::uint32_t stamp_ = 0;
};

}  // namespace foretrain
