// The corpus of wrong input: bad_input.json lists what is given to the program, the exit code and the message
// each must get. Messages are compared whole, so that a change of one is seen.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/json/parse.h"
#include "tests/cli/program.h"

namespace foretrain::test {
namespace {

constexpr const char* kGood = R"({"model": "gpt2", "cluster": "4xa30_pcie"})";
constexpr const char* kGoodTable = "name,parallel.dp,measured.tokens_per_s\na,1,100\nb,2,150\nc,4,300\n";

struct BadInput {
  std::string name, kind, text;
  std::vector<std::string> arguments;
  std::int64_t exit_code = 0;
  std::string says;
};

std::vector<BadInput> corpus() {
  auto document = parse_json_file(FORETRAIN_SOURCE_DIR "/tests/cli/bad_input.json");
  std::vector<BadInput> list;
  if (!document) return list;
  for (const JsonValue& item : document->children()) {
    BadInput entry;
    entry.name = item.find("name")->as_string();
    entry.kind = item.find("kind")->as_string();
    entry.exit_code = item.find("exit")->as_integer();
    entry.says = item.find("says")->as_string();
    if (const JsonValue* text = item.find("text")) entry.text = text->as_string();
    if (const JsonValue* hex = item.find("bytes")) {
      for (const JsonValue& byte : hex->children()) entry.text += static_cast<char>(byte.as_integer());
    }
    if (const JsonValue* arguments = item.find("arguments")) {
      for (const JsonValue& argument : arguments->children()) entry.arguments.push_back(argument.as_string());
    }
    list.push_back(std::move(entry));
  }
  return list;
}

TEST(BadInput, CorpusIsLargeEnough) { EXPECT_GE(corpus().size(), 150u); }

TEST(BadInput, EveryWrongInputGetsItsMessageAndExitCode) {
  for (const BadInput& entry : corpus()) {
    SCOPED_TRACE(entry.name);
    const Scratch scratch;
    write_text(scratch.path() / "base.json", kGood);
    std::vector<std::string> arguments = entry.arguments;
    if (entry.kind == "scenario") write_text(scratch.path() / "scenario.json", entry.text);
    if (entry.kind == "table") write_text(scratch.path() / "cases.csv", entry.text);
    if (entry.kind == "profile") {
      write_text(scratch.path() / "profile.json", entry.text);
      write_text(scratch.path() / "scenario.json",
                 R"({"model": "gpt2", "cluster": "4xa30_pcie", "profile": "profile.json"})");
    }
    if (entry.kind == "arguments") {
      write_text(scratch.path() / "scenario.json", kGood);
      write_text(scratch.path() / "cases.csv", kGoodTable);
    }
    const Outcome outcome = run_program(arguments, scratch.path());
    EXPECT_EQ(outcome.exit_code, entry.exit_code) << outcome.err;
    EXPECT_EQ(outcome.err, entry.says);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err.find("internal"), std::string::npos);
  }
}

}  // namespace
}  // namespace foretrain::test
