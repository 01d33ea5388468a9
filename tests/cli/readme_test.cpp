// Every command shown in README.md and docs/ is run, and must succeed (the two set-up scripts apart, which
// are what runs these tests).
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/program.h"

namespace foretrain::test {
namespace {

// Commands of the ```sh blocks that start with build/foretrain, continuation lines joined.
std::vector<std::string> commands_of(const std::filesystem::path& file) {
  std::istringstream in(file_text(file));
  std::vector<std::string> commands;
  std::string line, joined;
  bool shell = false;
  while (std::getline(in, line)) {
    if (line.starts_with("```")) {
      shell = line == "```sh";
      continue;
    }
    if (!shell) continue;
    joined += line;
    if (joined.ends_with('\\')) {
      joined.pop_back();
      continue;
    }
    if (joined.starts_with("build/foretrain")) commands.push_back(joined);
    joined.clear();
  }
  return commands;
}

TEST(Readme, EveryCommandShownSucceeds) {
  // A copy of the tree's files that commands read, with build/foretrain as a link, so that outputs stay out
  // of it.
  const Scratch scratch;
  const std::filesystem::path source = FORETRAIN_SOURCE_DIR;
  std::filesystem::copy(source / "scenarios", scratch.path() / "scenarios",
                        std::filesystem::copy_options::recursive);
  std::filesystem::create_directories(scratch.path() / "build");
  std::filesystem::create_directories(scratch.path() / "docs/pictures");
  std::filesystem::create_symlink(FORETRAIN_BINARY_DIR "/foretrain", scratch.path() / "build/foretrain");
  std::size_t run = 0;
  std::vector<std::filesystem::path> files{source / "README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(source / "docs")) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  for (const std::filesystem::path& file : files) {
    for (const std::string& command : commands_of(file)) {
      SCOPED_TRACE(command);
      const Outcome outcome = run_shell("timeout 120 " + command, scratch.path());
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      EXPECT_FALSE(outcome.out.empty());
      ++run;
    }
  }
  EXPECT_GE(run, 10u);
}

TEST(Readme, EveryShippedScenarioIsFine) {
  const std::filesystem::path scenarios = std::filesystem::path(FORETRAIN_SOURCE_DIR) / "scenarios";
  for (const auto& entry : std::filesystem::directory_iterator(scenarios)) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const Outcome outcome =
        run_program({"predict", entry.path().filename().string(), "--json", "-"}, scenarios);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
}

}  // namespace
}  // namespace foretrain::test
