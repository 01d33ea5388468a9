#include "model/program/instruction_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace foretrain {
namespace {

template <typename T>
std::int32_t append(std::vector<T>& all, const std::vector<T>& items) {
  all.insert(all.end(), items.begin(), items.end());
  return static_cast<std::int32_t>(all.size());
}

std::int32_t append_buffers(std::vector<std::int32_t>& all, const std::vector<std::int32_t>& items) {
  std::copy_if(items.begin(), items.end(), std::back_inserter(all), [](std::int32_t b) { return b >= 0; });
  return static_cast<std::int32_t>(all.size());
}

}  // namespace

InstructionId InstructionWriter::add(const InstructionDraft& draft) {
  Instruction instruction = draft.instruction;
  instruction.dependencies_begin = static_cast<std::int32_t>(class_.dependencies.size());
  instruction.dependencies_end = append(class_.dependencies, draft.dependencies);
  instruction.allocates_begin = static_cast<std::int32_t>(class_.allocates.size());
  instruction.allocates_end = append_buffers(class_.allocates, draft.allocates);
  instruction.frees_begin = static_cast<std::int32_t>(class_.frees.size());
  instruction.frees_end = append_buffers(class_.frees, draft.frees);
  instruction.tensor_frees_begin = static_cast<std::int32_t>(class_.tensor_frees.size());
  instruction.tensor_frees_end = append(class_.tensor_frees, draft.tensor_frees);
  class_.instructions.push_back(instruction);
  const InstructionId id{static_cast<std::int32_t>(class_.instructions.size()) - 1};
  last_[static_cast<std::size_t>(instruction.stream)] = id;
  return id;
}

std::int32_t InstructionWriter::buffer(std::string name, Bytes bytes, MemoryClass memory_class,
                                       std::int32_t count) {
  if (bytes.count() <= 0) return -1;
  class_.buffers.push_back(Buffer{std::move(name), bytes, memory_class, false, count});
  return static_cast<std::int32_t>(class_.buffers.size()) - 1;
}

void InstructionWriter::persistent(std::string name, Bytes bytes, MemoryClass memory_class,
                                   std::int32_t count) {
  if (bytes.count() <= 0) return;
  class_.buffers.push_back(Buffer{std::move(name), bytes, memory_class, true, count});
}

}  // namespace foretrain
