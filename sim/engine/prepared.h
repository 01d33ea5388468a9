// A step program laid out for execution on one cluster: who meets whom, over which links, where op lists have
// to be cut. Made once per program and cluster, read by every run under any profile; immutable then.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/hardware/cluster.h"
#include "model/program/step_program.h"
#include "sim/network/pattern.h"

namespace foretrain {

// A collective or transfer of a given size over a given pattern: what one execution costs depends on this
// alone.
struct Exchange {
  std::int32_t pattern = -1;
  Bytes payload;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::int32_t group_size = 1;
};

enum class Meeting : std::uint8_t {
  none,      // no communication, or with nobody (groups of one rank)
  local,     // all members are of the class: starts when the class arrives
  joint,     // groups span the stages: starts when every class has arrived
  transfer,  // a send and its recv
};

// The communication that ends an instruction or stands inside its op list.
struct Encounter {
  Meeting meeting = Meeting::none;
  std::int32_t exchange = -1;  // index into Prepared::exchanges; -1 when nothing is moved
  // joint: index of the group kind; transfer: index of the slot where the two ends meet.
  std::int32_t slot = -1;
};

// Where an op list is cut because an instruction waits for it, and what the host issues there.
struct Marker {
  std::int32_t op_end = 0;           // passed when ops before it are done
  std::vector<std::int32_t> hooked;  // instructions that the host issues here, in list order
};

struct PreparedInstruction {
  std::vector<Marker> markers;  // ascending op_end
  bool communicates = false;    // the host issues a collective or transfer at its end
  bool copies = false;          // moves `payload` between host and device
  bool hooked = false;          // issued from a hook of another instruction, not from its place in the list
  Encounter encounter;          // of the instruction itself
  std::vector<std::int32_t> dependents;  // instructions that wait for this one, ascending
};

struct PreparedClass {
  std::vector<PreparedInstruction> instructions;
  std::array<std::vector<std::int32_t>, kStreams> order;  // instructions of each stream in issue order
  // Encounters of collectives inside op lists: by op list, by collective op in order.
  std::map<std::int32_t, std::vector<Encounter>> inside;
};

struct Prepared {
  const StepProgram* program = nullptr;
  const Cluster* cluster = nullptr;
  std::vector<PreparedClass> classes;
  std::vector<Exchange> exchanges;
  std::int32_t joint_kinds = 0;                 // distinct groups that span stages
  std::int32_t transfer_slots = 0;              // sends and recvs meet in these
  std::vector<std::vector<Time>> kernel_model;  // kernel_model_times by op list
  PatternSet patterns;
  bool multi_gpu = false;

  Prepared(const StepProgram& the_program, const Cluster& the_cluster);
};

// `program` and `cluster` must outlive the result. Errors: more ranks than GPUs; ranks that are not
// connected; op lists, dependencies or peers out of range.
Expected<Prepared> prepare(const StepProgram& program, const Cluster& cluster);

// Whether instructions of the kind communicate, and by which collective when the kind alone says it.
bool is_communication(InstructionKind kind);

}  // namespace foretrain
