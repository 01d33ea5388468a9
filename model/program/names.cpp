#include <array>
#include <string>

#include <fmt/format.h>

#include "model/program/step_program.h"

namespace foretrain {

std::string_view name_of(InstructionKind kind) {
  static constexpr std::array<std::string_view, 22> kNames{"forward",
                                                           "backward",
                                                           "backward_input",
                                                           "backward_weight",
                                                           "recompute",
                                                           "all_gather_params",
                                                           "reduce_scatter_grads",
                                                           "free_params",
                                                           "all_reduce_grads",
                                                           "send",
                                                           "recv",
                                                           "unscale",
                                                           "grad_norm",
                                                           "clip",
                                                           "optimizer_step",
                                                           "zero_grad",
                                                           "all_reduce_flag",
                                                           "host_to_device",
                                                           "save",
                                                           "copy_gradients",
                                                           "broadcast_buffers",
                                                           "device_to_host"};
  const auto index = static_cast<std::size_t>(kind);
  return index < kNames.size() ? kNames[index] : "?";
}

std::string_view name_of(StreamKind stream) {
  static constexpr std::array<std::string_view, kStreams> kNames{"compute", "data_parallel", "pipeline_send",
                                                                 "pipeline_recv", "copy"};
  const auto index = static_cast<std::size_t>(stream);
  return index < kNames.size() ? kNames[index] : "?";
}

std::string label_of(const Instruction& i) {
  const auto block = [&](const char* letter) {
    return fmt::format("{}{}.mb{}", letter, i.block, i.micro_batch);
  };
  const auto unit = [&](const char* what, const char* of) {
    std::string text = i.unit < 0 ? std::string(what) : fmt::format("{} {} {}", what, of, i.unit);
    if (i.micro_batch >= 0) text += fmt::format(".mb{}", i.micro_batch);
    return text;
  };
  const auto transfer = [&](const char* verb, const char* arrow) {
    if (i.micro_batch < 0) return fmt::format("{} embedding gradient {} stage {}", verb, arrow, i.peer_stage);
    return fmt::format("{} {}{} mb{} {} stage {}", verb, i.tag % 2 == 0 ? "F" : "B", i.block, i.micro_batch,
                       arrow, i.peer_stage);
  };
  switch (i.kind) {
    case InstructionKind::forward:
      return block("F");
    case InstructionKind::backward:
      return block("B");
    case InstructionKind::backward_input:
      return block("Bi");
    case InstructionKind::backward_weight:
      return block("Bw");
    case InstructionKind::recompute:
      return block("R");
    case InstructionKind::all_gather_params:
      return unit("AllGather", "unit");
    case InstructionKind::reduce_scatter_grads:
      return unit("ReduceScatter", "unit");
    case InstructionKind::free_params:
      return unit("Free", "unit");
    case InstructionKind::all_reduce_grads:
      return i.unit < 0 ? "AllReduce replicated gradients" : unit("AllReduce", "bucket");
    case InstructionKind::send:
      return transfer("Send", "->");
    case InstructionKind::recv:
      return transfer("Recv", "<-");
    case InstructionKind::unscale:
      return "Unscale";
    case InstructionKind::grad_norm:
      return "GradNorm";
    case InstructionKind::clip:
      return "Clip";
    case InstructionKind::optimizer_step:
      return "OptimizerStep";
    case InstructionKind::zero_grad:
      return "ZeroGrad";
    case InstructionKind::all_reduce_flag:
      return "AllReduce flag";
    case InstructionKind::host_to_device:
      return "HostToDevice";
    case InstructionKind::save:
      return "Save";
    case InstructionKind::copy_gradients:
      return i.block >= 0 ? "Add embedding gradient" : unit("CopyGradients", "unit");
    case InstructionKind::broadcast_buffers:
      return "BroadcastBuffers";
    case InstructionKind::device_to_host:
      return "Loss";
  }
  return "?";
}

}  // namespace foretrain
