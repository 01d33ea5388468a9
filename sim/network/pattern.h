// A communication pattern: what a collective over all groups of some mesh dimensions (or a transfer
// between two stages, for all replicas at once) puts on the links, per byte of payload. Identical groups
// run at the same time, so one activity stands for all of them; links that carry the same load in every
// pattern of a program are kept once, which makes a 16,384-rank cluster a handful of constraints.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/base/ids.h"
#include "model/base/units.h"
#include "model/hardware/cluster.h"
#include "model/hardware/collective_kind.h"
#include "model/hardware/profile.h"

namespace foretrain {

// Groups of global ranks that do the same collective at the same time. send_recv: groups of two
// (source, destination).
struct PatternKey {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<std::vector<Rank>> groups;
};

// How one execution of a pattern for a given payload behaves on an otherwise idle network.
struct TransferPlan {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
  std::int32_t steps = 0;           // latency terms
  Time latency;                     // before bytes flow at full rate
  double work_bytes = 0;            // amount to be moved: the activity's size
  double rate_cap_bytes_per_s = 0;  // protocol and channel limit, whatever the links could do
};

// Patterns of one program on one cluster.
class PatternSet {
 public:
  explicit PatternSet(const Cluster& cluster);
  PatternSet(PatternSet&&) noexcept;
  ~PatternSet();

  // Adds a pattern (equal keys are merged) and returns its index. Errors: a pair without a route.
  tl::expected<std::int32_t, std::string> add(const PatternKey& key);
  // Call once after the last add: merges equal links.
  void compress();

  const PatternKey& key(std::int32_t pattern) const;
  std::int32_t constraint_count() const;
  // Capacities of the constraints under a profile, bytes/s.
  std::vector<double> capacities(const Profile& profile) const;
  // Constraints that `pattern` uses under `algorithm`, with bytes on the link per byte of work.
  struct Use {
    std::int32_t constraint;
    double bytes_per_work_byte;
  };
  std::span<const Use> uses(std::int32_t pattern, Algorithm algorithm) const;
  // Chooses algorithm and protocol for a payload as NCCL does, and sizes the activity.
  TransferPlan plan(std::int32_t pattern, Bytes payload, const Profile& profile) const;
  // Least time in which any algorithm could move the payload over the idle network.
  Time lower_bound(std::int32_t pattern, Bytes payload, const Profile& profile) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrain
