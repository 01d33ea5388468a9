#include "model/base/file.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace foretrain {
namespace {

using testing::HasSubstr;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "foretrain_file_XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++count;
    return count;
  }
  std::filesystem::path folder_;
};

TEST_F(FileTest, WhatIsWrittenIsRead) {
  const std::string content("a\0b\r\n\xff", 6);
  ASSERT_TRUE(write_file_atomic(at("a"), content));
  EXPECT_EQ(*read_file(at("a")), content);
  ASSERT_TRUE(write_file_atomic(at("a"), ""));
  EXPECT_EQ(*read_file(at("a")), "");
  EXPECT_EQ(files(), 1U);
}

TEST_F(FileTest, LargeContentIsWhole) {
  const std::string content(3'000'001, 'x');
  ASSERT_TRUE(write_file_atomic(at("a"), content));
  EXPECT_EQ(read_file(at("a"))->size(), content.size());
}

TEST_F(FileTest, ReadingSaysWhyNot) {
  const auto missing = read_file(at("none"));
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error()[0].code, ErrorCode::io);
  EXPECT_EQ(missing.error()[0].where.file, at("none"));
  EXPECT_EQ(missing.error()[0].message, "does not exist");
  EXPECT_THAT(read_file(folder_.string()).error()[0].message, HasSubstr("is a folder"));
  EXPECT_THAT(read_file(std::string("a\0b", 3)).error()[0].message, HasSubstr("NUL"));
  EXPECT_THAT(read_file("").error()[0].message, HasSubstr("not exist"));
}

TEST_F(FileTest, ReadingStopsAtTheLimit) {
  ASSERT_TRUE(write_file_atomic(at("a"), "12345"));
  EXPECT_TRUE(read_file(at("a"), 5).has_value());
  EXPECT_THAT(read_file(at("a"), 4).error()[0].message, HasSubstr("larger than 4 bytes"));
  EXPECT_THAT(read_file("/dev/zero", 100000).error()[0].message, HasSubstr("larger than"));
}

TEST_F(FileTest, AnUnreadableFileIsAnError) {
  ASSERT_TRUE(write_file_atomic(at("a"), "x"));
  ASSERT_EQ(::chmod(at("a").c_str(), 0), 0);
  if (::geteuid() == 0) GTEST_SKIP() << "skipped: root reads everything";
  EXPECT_THAT(read_file(at("a")).error()[0].message, HasSubstr("cannot be read"));
}

TEST_F(FileTest, WritingSaysWhyNotAndLeavesNothing) {
  EXPECT_THAT(write_file_atomic(folder_.string(), "x").error()[0].message, HasSubstr("is a folder"));
  const auto lost = write_file_atomic(at("no/such/folder"), "x");
  ASSERT_FALSE(lost.has_value());
  EXPECT_EQ(lost.error()[0].code, ErrorCode::io);
  EXPECT_THAT(lost.error()[0].hint, HasSubstr("make its folder"));
  EXPECT_EQ(files(), 0U);
}

TEST_F(FileTest, WritingKeepsPermissionsAndSymbolicLinks) {
  ASSERT_TRUE(write_file_atomic(at("a"), "x"));
  ASSERT_EQ(::chmod(at("a").c_str(), 0640), 0);
  std::filesystem::create_symlink(at("a"), at("link"));
  ASSERT_TRUE(write_file_atomic(at("link"), "y"));
  EXPECT_TRUE(std::filesystem::is_symlink(at("link")));
  EXPECT_EQ(*read_file(at("a")), "y");
  struct stat status {};
  ASSERT_EQ(::stat(at("a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

TEST_F(FileTest, WritingToADeviceWritesDirectly) {
  EXPECT_TRUE(write_file_atomic("/dev/null", "x").has_value());
  EXPECT_THAT(write_file_atomic("/dev/full", "x").error()[0].message, HasSubstr("cannot be written"));
}

}  // namespace
}  // namespace foretrain
