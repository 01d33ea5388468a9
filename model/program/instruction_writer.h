// Appends instructions with their dependencies and buffers to a rank class.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "model/program/step_program.h"

namespace foretrain {

// An instruction on its way into a rank class; `allocates` and `frees` are buffers.
struct InstructionDraft {
  Instruction instruction;
  std::vector<Dependency> dependencies;
  std::vector<std::int32_t> allocates, frees;
  std::vector<TensorRef> tensor_frees;

  InstructionDraft(InstructionKind kind, StreamKind stream) {
    instruction.kind = kind;
    instruction.stream = stream;
  }
  void after(InstructionId id, std::int32_t op = -1) {
    if (id.valid()) dependencies.push_back({id, op});
  }
};

class InstructionWriter {
 public:
  explicit InstructionWriter(RankClass& rank_class) : class_(rank_class) {}

  InstructionId add(const InstructionDraft& draft);
  // A buffer that instructions allocate and free; zero bytes give -1, which drafts ignore.
  std::int32_t buffer(std::string name, Bytes bytes, MemoryClass memory_class, std::int32_t count = 1);
  // The instruction issued last on a stream; invalid when there is none.
  InstructionId last(StreamKind stream) const { return last_[static_cast<std::size_t>(stream)]; }
  // A buffer that exists before the step and is never freed.
  void persistent(std::string name, Bytes bytes, MemoryClass memory_class, std::int32_t count = 1);

 private:
  RankClass& class_;
  std::array<InstructionId, kStreams> last_{};
};

}  // namespace foretrain
