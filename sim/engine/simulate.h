// Executes a StepProgram on a simulated cluster. No global state: many simulations may run in one
// process, each in its own thread; a Simulator itself is not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/hardware/cluster.h"
#include "model/hardware/profile.h"
#include "model/program/step_program.h"
#include "model/timeline/timeline.h"

namespace foretrain {

enum class Fidelity : std::uint8_t { fluid, chunk };

struct SimulationOptions {
  Fidelity fidelity = Fidelity::fluid;
  bool timeline = false;   // record spans (one per instruction, per rank class representative)
  bool all_ranks = false;  // spans for every rank, not only one per class
  bool ops = false;        // also one span per op
  bool memory = true;      // replay the allocator
};

// Where the time of one rank of a class went; sums to step_time.
struct RankBreakdown {
  std::int32_t stage = 0;
  Time compute;                   // device busy with forward, backward, optimizer
  Time exposed_communication;     // waiting for a collective or transfer that is under way (not overlapped)
  Time bubble;                    // waiting for another stage's work
  Time host;                      // device idle because the host has not issued the next kernel
  Time overlapped_communication;  // communication while computing (not part of the sum)
};

struct MemoryReport {
  Bytes peak_allocated;
  Bytes peak_reserved;
  std::array<Bytes, 7> at_peak{};  // by MemoryClass, at the moment of peak_allocated
  std::array<Bytes, 7> peak_of_class{};
  std::vector<std::pair<std::int64_t, std::int64_t>> over_time;  // (ps, allocated bytes), when asked for
};

struct SimulationResult {
  Time step_time;
  std::vector<RankBreakdown> breakdown;  // per rank class
  std::vector<MemoryReport> memory;      // per rank class
  std::uint64_t event_hash = 0;          // of the whole event log: equal means equal
  std::uint64_t events = 0;
  Time collective_lower_bound;  // no schedule of the same transfers could communicate faster
  Timeline timeline;
};

// Prepares a program for a cluster once (routes, link loads, op costs by shape); simulates it for any
// profile.
class Simulator {
 public:
  // Errors: more ranks than GPUs; a pair of ranks with no route.
  static Expected<Simulator> create(const StepProgram& program, const Cluster& cluster);
  Simulator(Simulator&&) noexcept;
  Simulator& operator=(Simulator&&) noexcept;
  ~Simulator();

  // Errors: a deadlock, with every waiting rank and instruction named.
  Expected<SimulationResult> run(const Profile& profile, const SimulationOptions& options = {}) const;

 private:
  class Impl;
  explicit Simulator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrain
