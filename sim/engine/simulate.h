// Executes a StepProgram on a simulated cluster. No global state: many simulations may run in one
// process, each in its own thread.
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
#include "sim/engine/step_graph.h"

namespace foretrain {

enum class Fidelity : std::uint8_t { fluid, chunk };

struct SimulationOptions {
  Fidelity fidelity = Fidelity::fluid;
  bool timeline = false;          // record spans (one per instruction, per rank class representative)
  bool all_ranks = false;         // spans for every rank, not only one per class
  bool ops = false;               // also one span per op
  bool host_track = false;        // also one span per instruction on the issuing thread's track
  bool memory = true;             // replay the allocator
  bool memory_over_time = false;  // keep the allocated bytes over time
  bool graph = false;             // record what waited for what: StepGraph, for the critical path
};

// Where the time of one rank of a class went; sums to step_time.
struct RankBreakdown {
  std::int32_t stage = 0;
  Time compute;  // device work: forward, backward, optimizer, at the rate of an otherwise idle device
  // Waiting for a collective or transfer that is under way, and what overlapped communication slowed the
  // computing by: what would be won if communication took no time and no resources.
  Time exposed_communication;
  Time bubble;  // waiting for another stage's work
  Time host;    // device idle because the host has not issued the next kernel
  // Communication while computing, less the slow-down it caused (not part of the sum).
  Time overlapped_communication;

  Time total() const { return compute + exposed_communication + bubble + host; }
};

// Of one rank of a class. `workspace` contains the profile's memory constant; it is part of both peaks.
struct MemoryReport {
  Bytes peak_allocated;
  Bytes peak_reserved;
  bool exceeded = false;           // more than the GPU has, even after the allocator gave back what it cached
  std::array<Bytes, 7> at_peak{};  // by MemoryClass, at the moment of peak_allocated
  std::array<Bytes, 7> peak_of_class{};
  std::int32_t micro_batches_in_flight = 0;  // whose forward of one block has tensors alive, at most
  std::vector<std::pair<std::int64_t, std::int64_t>> over_time;  // (ps, allocated bytes), when asked for
};

struct SimulationResult {
  Time step_time;
  std::vector<RankBreakdown> breakdown;  // per rank class
  std::vector<MemoryReport> memory;      // per rank class
  std::uint64_t event_hash = 0;          // of the whole event log: equal means equal
  std::uint64_t events = 0;
  Time collective_lower_bound;  // no schedule of the same transfers could communicate faster
  Timeline timeline;            // when asked for
  StepGraph graph;              // when asked for
};

// Prepares a program for a cluster once (routes, link loads, op costs by shape); simulates it for any
// profile.
class Simulator {
 public:
  // Keeps copies of what it needs of both. Errors: more ranks than GPUs; a pair of ranks with no route.
  static Expected<Simulator> create(const StepProgram& program, const Cluster& cluster);
  Simulator(Simulator&&) noexcept;
  Simulator& operator=(Simulator&&) noexcept;
  ~Simulator();

  // Const and free of shared state: one Simulator may run in several threads at once. Errors: a deadlock,
  // with every waiting rank class and instruction named; a transfer that gets no bandwidth.
  Expected<SimulationResult> run(const Profile& profile, const SimulationOptions& options = {}) const;

 private:
  class Impl;
  explicit Simulator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrain
