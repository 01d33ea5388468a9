// Runs a program in which everything takes no time, one rank per class: what still waits at the end waits
// forever. Sends are rendezvous (they end when received), the strictest reading of NCCL.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/program/step_program.h"

namespace foretrain {

// The kinds that run a collective over Instruction::group.
bool is_group_collective(InstructionKind kind);

// "rank 8 (stage 1) instruction 12 \"F3.mb1\"": the first rank of the class stands for all.
std::string instruction_name(const StepProgram& program, std::size_t rank_class, std::size_t instruction);

// One line per instruction that stands first in its stream and waits forever; empty when the program ends.
// All indices in the program must be valid.
std::vector<std::string> find_deadlock(const StepProgram& program);

}  // namespace foretrain
