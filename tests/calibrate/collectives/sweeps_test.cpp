// Reading of tables of collective measurements, right and wrong.
#include "calibrate/collectives/sweeps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/json/csv.h"

namespace foretrain {
namespace {

using testing::HasSubstr;

constexpr const char* kHeader = "source,collective,gpu,n_gpus,nodes,intra_link,size_bytes,time_us_oop\n";

Expected<std::vector<CollectiveSweep>> read(const std::string& text) {
  const auto table = parse_csv(text, "t.csv");
  if (!table) return fail(table.error());
  return read_collective_sweeps(*table);
}

std::string error_of(const std::string& text) {
  const auto sweeps = read(text);
  return sweeps ? "no error" : to_text(sweeps.error());
}

TEST(CollectiveSweeps, RowsOfOneMachineAndCollectiveAreOneSweepOrderedBySize) {
  const auto sweeps = read(std::string(kHeader) +
                           "a,all_reduce,V100,8,2,NVLink,1024,20\n"
                           "a,alltoall,V100,8,2,NVLink,8,10.5\n"
                           "a,all_reduce,V100,8,2,NVLink,8,11\n");
  ASSERT_TRUE(sweeps.has_value());
  ASSERT_EQ(sweeps->size(), 2u);
  const auto& first = sweeps->front();
  EXPECT_EQ(first.kind, CollectiveKind::all_reduce);
  EXPECT_EQ(first.group.ranks, 8);
  EXPECT_EQ(first.group.nodes, 2);
  EXPECT_TRUE(first.group.nvlink);
  ASSERT_EQ(first.points.size(), 2u);
  EXPECT_EQ(first.points[0].bytes, 8);
  EXPECT_EQ(first.points[1].time_us, 20);
  EXPECT_EQ(sweeps->back().kind, CollectiveKind::all_to_all);
  EXPECT_EQ(first.machine_key(), sweeps->back().machine_key());
}

TEST(CollectiveSweeps, LinkTextTellsNvlinkAndHostStaging) {
  const auto sweeps = read(std::string(kHeader) +
                           "a,all_reduce,X,2,1,\"PCIe Gen3, no NVLink\",8,1\n"
                           "b,all_reduce,X,2,1,NVSwitch,8,1\n"
                           "c,all_reduce,X,2,1,\"PCIe, no P2P (SHM via host)\",8,1\n");
  ASSERT_TRUE(sweeps.has_value());
  EXPECT_FALSE((*sweeps)[0].group.nvlink);
  EXPECT_FALSE((*sweeps)[0].host_staged);
  EXPECT_TRUE((*sweeps)[1].group.nvlink);
  EXPECT_FALSE((*sweeps)[2].group.nvlink);
  EXPECT_TRUE((*sweeps)[2].host_staged);
}

TEST(CollectiveSweeps, EveryWrongCellIsReportedWithItsPlace) {
  const std::string errors = error_of(std::string(kHeader) +
                                      "a,all_reduse,V100,8,2,,8,11\n"
                                      "a,all_reduce,V100,8,3,,8,11\n"
                                      "a,all_reduce,V100,1,1,,8,11\n"
                                      "a,all_reduce,V100,8,1,,0,11\n"
                                      "a,all_reduce,V100,8,1,,8,-1\n"
                                      "a,all_reduce,V100,8,1,,8,nan\n"
                                      "a,all_reduce,,8,1,,8,1\n"
                                      "a,all_reduce,V100,8.5,1,,8,1\n");
  EXPECT_THAT(errors, HasSubstr("t.csv:2:3"));
  EXPECT_THAT(errors, HasSubstr("did you mean \"all_reduce\"?"));
  EXPECT_THAT(errors, HasSubstr("t.csv:3:21"));
  EXPECT_THAT(errors, HasSubstr("expected a divisor of n_gpus, which is 8"));
  EXPECT_THAT(errors, HasSubstr("t.csv:4:"));
  EXPECT_THAT(errors, HasSubstr("is 1; expected a whole number from 2 to"));
  EXPECT_THAT(errors, HasSubstr("t.csv:5:"));
  EXPECT_THAT(errors, HasSubstr("t.csv:6:"));
  EXPECT_THAT(errors, HasSubstr("expected microseconds above 0"));
  EXPECT_THAT(errors, HasSubstr("t.csv:7:"));
  EXPECT_THAT(errors, HasSubstr("t.csv:8:"));
  EXPECT_THAT(errors, HasSubstr("t.csv:9:"));
}

TEST(CollectiveSweeps, MissingAndUnknownColumnsAreErrors) {
  EXPECT_THAT(error_of("collective,gpu,nodes,size_bytes,time_us_oop\nall_reduce,V100,1,8,1\n"),
              HasSubstr("n_gpus"));
  const std::string unknown =
      error_of("collective,gpu,n_gpus,nodes,size_bytes,time_us_oop,time_ns\nall_reduce,V100,2,1,8,1,1\n");
  EXPECT_THAT(unknown, HasSubstr("t.csv:1:52"));
  EXPECT_THAT(unknown, HasSubstr("time_ns"));
}

TEST(CollectiveSweeps, ATableWithoutRowsIsAnError) { EXPECT_THAT(error_of(kHeader), HasSubstr("no rows")); }

TEST(CollectiveSweeps, AFileThatDoesNotExistIsAnIoError) {
  const auto sweeps = read_collective_sweeps(std::string("/nowhere/sweeps.csv"));
  ASSERT_FALSE(sweeps.has_value());
  EXPECT_EQ(sweeps.error().front().code, ErrorCode::io);
}

}  // namespace
}  // namespace foretrain
