// The mesh of ranks. Dimensions from slowest to fastest: pp, dp, fsdp, tp; so tensor-parallel groups are
// neighbours (inside a node) and pipeline stages are furthest apart, as Megatron-LM orders them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/base/ids.h"

namespace foretrain {

enum class MeshDim : std::uint8_t { pp = 0, dp = 1, fsdp = 2, tp = 3 };
constexpr int kMeshDims = 4;

// A set of mesh dimensions: the group of a collective spans exactly these.
struct MeshDims {
  std::uint8_t mask = 0;
  constexpr bool has(MeshDim dim) const { return (mask >> static_cast<int>(dim)) & 1; }
  constexpr MeshDims with(MeshDim dim) const {
    return MeshDims{static_cast<std::uint8_t>(mask | (1u << static_cast<int>(dim)))};
  }
  friend constexpr auto operator<=>(MeshDims, MeshDims) = default;
};
template <typename... Dims>
constexpr MeshDims mesh_dims(Dims... dims) {
  MeshDims set;
  ((set = set.with(dims)), ...);
  return set;
}
constexpr MeshDims kDataParallel = MeshDims{}.with(MeshDim::dp).with(MeshDim::fsdp);
constexpr MeshDims kAllDims = kDataParallel.with(MeshDim::pp).with(MeshDim::tp);

struct Mesh {
  std::array<std::int32_t, kMeshDims> size{1, 1, 1, 1};  // indexed by MeshDim

  std::int32_t at(MeshDim dim) const { return size[static_cast<std::size_t>(dim)]; }
  std::int32_t world() const;
  std::int32_t group_size(MeshDims dims) const;
  std::int32_t coordinate(Rank rank, MeshDim dim) const;
  Rank rank_at(const std::array<std::int32_t, kMeshDims>& coordinates) const;
  // The members of rank's group over `dims`, ascending.
  std::vector<Rank> group_of(Rank rank, MeshDims dims) const;
  // Every group over `dims`, ordered by first member.
  std::vector<std::vector<Rank>> groups(MeshDims dims) const;
  // `rank` with its coordinate along `dim` replaced.
  Rank moved(Rank rank, MeshDim dim, std::int32_t coordinate) const;
};

// "dp x tp", or "world" for all of them, "self" for none.
std::string name_of(MeshDims dims);

}  // namespace foretrain
