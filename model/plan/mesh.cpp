#include "model/plan/mesh.h"

#include <algorithm>

#include <fmt/format.h>

namespace foretrain {
namespace {

constexpr std::array<std::string_view, kMeshDims> kDimNames{"pp", "dp", "fsdp", "tp"};

constexpr MeshDim dim_at(int index) { return static_cast<MeshDim>(index); }

}  // namespace

std::int32_t Mesh::world() const { return group_size(kAllDims); }

std::int32_t Mesh::group_size(MeshDims dims) const {
  std::int32_t count = 1;
  for (int d = 0; d < kMeshDims; ++d) {
    if (dims.has(dim_at(d))) count *= at(dim_at(d));
  }
  return count;
}

std::int32_t Mesh::coordinate(Rank rank, MeshDim dim) const {
  std::int32_t rest = rank.value;
  for (int d = kMeshDims - 1; d > static_cast<int>(dim); --d) rest /= at(dim_at(d));
  return rest % at(dim);
}

Rank Mesh::rank_at(const std::array<std::int32_t, kMeshDims>& coordinates) const {
  std::int32_t index = 0;
  for (int d = 0; d < kMeshDims; ++d) {
    index = index * at(dim_at(d)) + coordinates[static_cast<std::size_t>(d)];
  }
  return Rank{index};
}

std::vector<Rank> Mesh::group_of(Rank rank, MeshDims dims) const {
  // Grown from the fastest dimension to the slowest, and sorted because each step appends whole copies.
  std::vector<Rank> members{rank};
  for (int d = kMeshDims - 1; d >= 0; --d) {
    if (!dims.has(dim_at(d))) continue;
    std::vector<Rank> grown;
    grown.reserve(members.size() * static_cast<std::size_t>(at(dim_at(d))));
    for (std::int32_t c = 0; c < at(dim_at(d)); ++c) {
      for (const Rank member : members) grown.push_back(moved(member, dim_at(d), c));
    }
    members = std::move(grown);
  }
  std::sort(members.begin(), members.end());
  return members;
}

std::vector<std::vector<Rank>> Mesh::groups(MeshDims dims) const {
  std::vector<std::vector<Rank>> all;
  for (std::int32_t r = 0; r < world(); ++r) {
    bool first = true;  // the first member has coordinate 0 along every dimension of the group
    for (int d = 0; d < kMeshDims; ++d) {
      if (dims.has(dim_at(d)) && coordinate(Rank{r}, dim_at(d)) != 0) first = false;
    }
    if (first) all.push_back(group_of(Rank{r}, dims));
  }
  return all;
}

Rank Mesh::moved(Rank rank, MeshDim dim, std::int32_t to) const {
  std::int32_t stride = 1;
  for (int d = kMeshDims - 1; d > static_cast<int>(dim); --d) stride *= at(dim_at(d));
  return Rank{rank.value + (to - coordinate(rank, dim)) * stride};
}

std::string name_of(MeshDims dims) {
  if (dims == kAllDims) return "world";
  std::string text;
  for (int d = 0; d < kMeshDims; ++d) {
    if (!dims.has(dim_at(d))) continue;
    if (!text.empty()) text += " x ";
    text += kDimNames[static_cast<std::size_t>(d)];
  }
  return text.empty() ? "self" : text;
}

}  // namespace foretrain
