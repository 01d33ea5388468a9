#include "model/plan/mesh.h"

#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace foretrain {
namespace {

std::vector<int> values(const std::vector<Rank>& ranks) {
  std::vector<int> out;
  for (const Rank r : ranks) out.push_back(r.value);
  return out;
}

TEST(Mesh, TensorParallelRanksAreNeighboursAndStagesFurthestApart) {
  const Mesh mesh{{2, 2, 1, 4}};  // pp, dp, fsdp, tp
  EXPECT_EQ(mesh.world(), 16);
  EXPECT_EQ(values(mesh.group_of(Rank{5}, mesh_dims(MeshDim::tp))), (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(values(mesh.group_of(Rank{5}, mesh_dims(MeshDim::dp))), (std::vector<int>{1, 5}));
  EXPECT_EQ(values(mesh.group_of(Rank{5}, mesh_dims(MeshDim::pp))), (std::vector<int>{5, 13}));
  EXPECT_EQ(values(mesh.group_of(Rank{5}, mesh_dims(MeshDim::pp, MeshDim::dp))),
            (std::vector<int>{1, 5, 9, 13}));
}

TEST(Mesh, GroupsAreOrderedByFirstMember) {
  const Mesh mesh{{2, 1, 2, 2}};
  std::vector<std::vector<int>> groups;
  for (const auto& group : mesh.groups(mesh_dims(MeshDim::fsdp))) groups.push_back(values(group));
  EXPECT_EQ(groups, (std::vector<std::vector<int>>{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(mesh.groups(MeshDims{}).size(), 8u);
  EXPECT_EQ(mesh.groups(kAllDims).size(), 1u);
}

TEST(Mesh, NamesOfDimensionSets) {
  EXPECT_EQ(name_of(mesh_dims(MeshDim::dp, MeshDim::tp)), "dp x tp");
  EXPECT_EQ(name_of(mesh_dims(MeshDim::pp)), "pp");
  EXPECT_EQ(name_of(kAllDims), "world");
  EXPECT_EQ(name_of(MeshDims{}), "self");
}

RC_GTEST_PROP(Mesh, CoordinatesAndRankAreInverse, ()) {
  Mesh mesh;
  for (auto& size : mesh.size) size = *rc::gen::inRange(1, 6);
  const Rank rank{*rc::gen::inRange(0, mesh.world())};
  std::array<std::int32_t, kMeshDims> at{};
  for (int d = 0; d < kMeshDims; ++d) {
    at[static_cast<std::size_t>(d)] = mesh.coordinate(rank, static_cast<MeshDim>(d));
    RC_ASSERT(at[static_cast<std::size_t>(d)] < mesh.size[static_cast<std::size_t>(d)]);
  }
  RC_ASSERT(mesh.rank_at(at) == rank);
  for (int d = 0; d < kMeshDims; ++d) {
    auto other = at;
    other[static_cast<std::size_t>(d)] = *rc::gen::inRange(0, mesh.size[static_cast<std::size_t>(d)]);
    RC_ASSERT(mesh.moved(rank, static_cast<MeshDim>(d), other[static_cast<std::size_t>(d)]) ==
              mesh.rank_at(other));
  }
}

RC_GTEST_PROP(Mesh, GroupsPartitionTheWorld, ()) {
  Mesh mesh;
  for (auto& size : mesh.size) size = *rc::gen::inRange(1, 5);
  const MeshDims dims{static_cast<std::uint8_t>(*rc::gen::inRange(0, 16))};
  std::set<Rank> seen;
  for (const auto& group : mesh.groups(dims)) {
    RC_ASSERT(group.size() == static_cast<std::size_t>(mesh.group_size(dims)));
    for (const Rank r : group) {
      RC_ASSERT(seen.insert(r).second);
      RC_ASSERT(mesh.group_of(r, dims) == group);
    }
  }
  RC_ASSERT(seen.size() == static_cast<std::size_t>(mesh.world()));
}

}  // namespace
}  // namespace foretrain
