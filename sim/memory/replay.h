// Replays one rank's allocations of a step through the model of the caching allocator: persistent buffers,
// buffers of instructions, tensors of op lists, gradients. The order of instructions comes from whoever ran
// the program. Pure; safe from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "model/hardware/gpu.h"
#include "model/program/step_program.h"
#include "sim/memory/caching_allocator.h"

namespace foretrain {

constexpr std::size_t kMemoryClasses = 7;

struct MemoryEvent {
  enum class Kind : std::uint8_t { begin, ops, end } kind = Kind::begin;
  std::int32_t instruction = -1;
  std::int32_t op_begin = 0, op_end = 0;  // of Kind::ops
  std::int64_t time_ps = 0;
};

struct MemoryReplay {
  Bytes peak_allocated, peak_reserved;
  bool exceeded = false;                              // the capacity, cached segments released
  std::array<Bytes, kMemoryClasses> at_peak{};        // by MemoryClass, at the moment of peak_allocated
  std::array<Bytes, kMemoryClasses> peak_of_class{};  // each at its own moment
  std::vector<std::pair<std::int64_t, std::int64_t>> over_time;  // (ps, allocated bytes) after each event
  // Micro-batches whose forward of one block has tensors alive, at most over time and blocks.
  std::int32_t micro_batches_in_flight = 0;
};

struct ReplayOptions {
  Bytes constant;          // what no tensor owns, allocated first and kept
  Bytes matmul_workspace;  // cuBLAS': one for the thread that runs forwards, one for the one that runs
                           // backwards
  Bytes capacity = Bytes(std::numeric_limits<std::int64_t>::max());  // of the device
  bool over_time = false;
};
MemoryReplay replay_memory(const StepProgram& program, const RankClass& rank_class,
                           std::span<const MemoryEvent> events, const ReplayOptions& options = {});

// What PyTorch gives cuBLAS per handle (aten/src/ATen/cuda/CublasHandlePool.cpp, :4096:2:16:8, and 32 MiB
// from Hopper on).
Bytes cublas_workspace(GpuArchitecture architecture);

// The order in which one rank alone would go through its instructions: list order.
std::vector<MemoryEvent> issue_order(const StepProgram& program, const RankClass& rank_class);

}  // namespace foretrain
