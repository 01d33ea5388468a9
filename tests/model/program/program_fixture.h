// Small models and lookups shared by the tests of step programs.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "model/arch/transformer.h"
#include "model/program/step_program.h"

namespace foretrain {

inline TransformerConfig small_model(std::int64_t layers = 4) {
  TransformerConfig m;
  m.name = "small";
  m.layers = layers;
  m.hidden = 64;
  m.heads = 8;
  m.kv_heads = 8;
  m.head_dim = 8;
  m.ffn_hidden = 256;
  m.vocab = 1000;
  m.max_positions = 128;
  return m;
}

inline TrainingSpec small_training(std::int64_t micro_batches = 1) {
  TrainingSpec t;
  t.micro_batch_size = 2;
  t.micro_batches = micro_batches;
  t.sequence_length = 32;
  return t;
}

inline StepProgram build(const TransformerConfig& model, const TrainingSpec& training,
                         const ParallelPlan& plan) {
  auto program = build_step_program(model, training, plan);
  if (!program) {
    ADD_FAILURE() << to_text(program.error());
    return {};
  }
  const Errors errors = check(*program);
  EXPECT_TRUE(errors.empty()) << describe(plan) << "\n" << to_text(errors);
  return std::move(*program);
}

inline std::vector<Instruction> of_kind(const RankClass& c, InstructionKind kind) {
  std::vector<Instruction> found;
  for (const Instruction& i : c.instructions) {
    if (i.kind == kind) found.push_back(i);
  }
  return found;
}

inline std::int64_t payload_of(const RankClass& c, InstructionKind kind) {
  std::int64_t sum = 0;
  for (const Instruction& i : of_kind(c, kind)) sum += i.payload.count();
  return sum;
}

inline std::int64_t persistent_bytes(const RankClass& c, MemoryClass memory_class) {
  std::int64_t sum = 0;
  for (const Buffer& b : c.buffers) {
    if (b.persistent && b.memory_class == memory_class) sum += b.bytes.count();
  }
  return sum;
}

inline std::vector<std::string> labels(const RankClass& c,
                                       const std::function<bool(const Instruction&)>& keep) {
  std::vector<std::string> names;
  for (const Instruction& i : c.instructions) {
    if (keep(i)) names.push_back(label_of(i));
  }
  return names;
}

}  // namespace foretrain
