// Strong indices: a Rank cannot be passed where an InstructionId is wanted.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace foretrain {

template <typename Tag>
struct Id {
  std::int32_t value = -1;
  constexpr bool valid() const { return value >= 0; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using Rank = Id<struct RankTag>;                  // global rank, 0..world-1
using InstructionId = Id<struct InstructionTag>;  // index into a rank class's instruction list
using LinkId = Id<struct LinkTag>;                // one direction of one physical link
using NodeId = Id<struct NodeTag>;                // vertex of the topology graph
using BlockId = Id<struct BlockTag>;              // block of the model, in forward order

}  // namespace foretrain

template <typename Tag>
struct std::hash<foretrain::Id<Tag>> {
  std::size_t operator()(foretrain::Id<Tag> id) const noexcept { return std::hash<std::int32_t>{}(id.value); }
};
