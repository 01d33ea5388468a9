// The op list: what one instruction of a step does on one rank, kernel by kernel. The simulator costs
// it, the memory model replays its allocations, the runtime's modules perform it.
//
// Lists are made by model/ops/expand.h for blocks and by model/program for optimizer and clipping.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/dtype.h"
#include "model/base/units.h"
#include "model/hardware/collective_kind.h"
#include "model/plan/mesh.h"

namespace foretrain {

enum class OpKind : std::uint8_t {
  matmul,             // batch x (m x k) (k x n); see `matmul`
  attention_forward,  // flash attention; see `attention`
  attention_backward,
  memory_bound,  // time by bytes read and written
  collective,    // blocks the stream until the group has done it; see `collective`
  host_sync,     // the host waits until the device has drained (.item(), inf check)
};

// For reports: what a memory-bound or other op is for.
enum class OpRole : std::uint8_t {
  matmul,
  attention,
  norm,
  softmax,
  mask,
  activation,
  dropout,
  residual,
  bias_gradient,
  cast,
  copy,
  embedding,
  position,
  loss,
  optimizer,
  gradient_scaling,
  gradient_clipping,
  collective,
  sync
};

// How the operands of a matmul lie in memory, in BLAS letters for A and B, column major as cuBLAS
// and the measured tables name it. Forward of nn.Linear: TN; input gradient: NN; weight gradient: NT.
enum class MatmulLayout : std::uint8_t { nn, nt, tn, tt };

struct MatmulShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  DType input = DType::fp32;
  DType output = DType::fp32;
  bool tensor_cores = false;  // fp16/bf16/tf32: true; plain fp32: false
  MatmulLayout layout = MatmulLayout::nn;
  friend bool operator==(const MatmulShape&, const MatmulShape&) = default;
};

struct AttentionShape {
  std::int64_t batch = 0, query_length = 0, key_length = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t window = 0;  // 0: none
  bool causal = true;
  DType dtype = DType::fp16;
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::all_reduce;
  MeshDims group;  // the mesh dimensions that the group spans
  Bytes bytes;     // as nccl-tests counts them, see CollectiveKind
  DType dtype = DType::fp32;
  friend bool operator==(const CollectiveShape&, const CollectiveShape&) = default;
};

enum class MemoryClass : std::uint8_t {
  parameters,
  gradients,
  optimizer,
  activations,
  buffers,
  workspace,
  communication
};
std::string_view name_of(MemoryClass memory_class);
std::string_view name_of(OpKind kind);
std::string_view name_of(OpRole role);

// A tensor of one (block, micro-batch): allocated by an op of the forward list and freed by an op of
// the same list (temporary) or of the backward list (saved for backward).
struct Tensor {
  std::string name;
  Bytes bytes;
  DType dtype = DType::fp32;
  MemoryClass memory_class = MemoryClass::activations;
};

struct Op {
  OpKind kind = OpKind::memory_bound;
  OpRole role = OpRole::copy;
  std::string name;                     // "attn.softmax", "mlp.fc1.weight_grad"
  Bytes read, written;                  // DRAM traffic of the op's kernels
  Flops flops;                          // multiply-adds x 2 that the hardware does
  MatmulShape matmul;                   // kind == matmul
  AttentionShape attention;             // kind == attention_*
  CollectiveShape collective;           // kind == collective
  int launches = 1;                     // kernels that the host issues for it
  std::vector<std::int32_t> allocates;  // tensors (index into the tensor table) allocated before it runs
  std::vector<std::int32_t> frees;      // tensors freed after it has been issued
  std::vector<std::int32_t>
      completes;  // parameters (index in the block's list) whose gradient is complete after it
};

using TensorTable = std::vector<Tensor>;

struct OpList {
  std::vector<Op> ops;
  std::int32_t tensor_table = -1;  // in StepProgram::tensor_tables; lists of one block share one table
};

// The op lists of one block kind under one training set-up. Every tensor index of the four lists points
// into `tensors`. Boundary tensors: `input` belongs to the block before (its output), `output` is
// allocated by this block's forward and freed by the next block's backward, `output_gradient` is
// allocated by the next block's backward and freed by this block's, `input_gradient` the reverse.
struct BlockExpansion {
  TensorTable tensors;
  std::vector<Op> forward;
  std::vector<Op> backward;          // both gradients, in PyTorch's order
  std::vector<Op> backward_input;    // split backward (zero-bubble schedules): input gradients only
  std::vector<Op> backward_weight;   //   and weight gradients only
  std::vector<Op> recompute;         // before backward, when activations are recomputed; else empty
  std::int32_t output = -1;          // tensor index; -1 for the head (the loss)
  std::int32_t input_gradient = -1;  // -1 for the embedding
  Bytes boundary_bytes;              // size of the block's output as sent between pipeline stages
  DType boundary_dtype = DType::fp32;
};

}  // namespace foretrain
