// The event-log hash of every shipped scenario and of the 18 A30 cases is the same in every run, thread count
// and build type: event_hashes.json holds them. FORETRAIN_UPDATE_GOLDENS=1 writes the file anew; read its
// diff.
#include <gtest/gtest.h>
#include <tbb/parallel_for.h>

#include <map>

#include <fmt/format.h>

#include "calibrate/cases/case_table.h"
#include "model/json/parse.h"
#include "model/json/write.h"
#include "sim/report/report.h"
#include "tests/cli/program.h"

namespace foretrain::test {
namespace {

const std::filesystem::path kSource = FORETRAIN_SOURCE_DIR;
const std::filesystem::path kGoldens = kSource / "tests/cli/event_hashes.json";

std::map<std::string, Scenario> scenarios() {
  std::map<std::string, Scenario> all;
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "scenarios")) {
    if (entry.path().extension() != ".json") continue;
    auto scenario = read_scenario(entry.path().string());
    EXPECT_TRUE(scenario) << (scenario ? "" : to_text(scenario.error()));
    if (scenario) all.emplace(entry.path().stem().string(), std::move(*scenario));
  }
  auto table = read_case_table((kSource / "scenarios/a30_pcie/cases.csv").string());
  EXPECT_TRUE(table);
  if (table) {
    for (MeasuredCase& c : table->cases) all.emplace("a30_pcie: " + c.name, std::move(c.scenario));
  }
  return all;
}

std::string hash_of(const Scenario& s) {
  PredictOptions options;
  options.intervals = false;
  const auto prediction = predict(s.model, s.training, s.parallel, s.cluster, s.profile, options);
  EXPECT_TRUE(prediction) << (prediction ? "" : to_text(prediction.error()));
  return prediction ? fmt::format("{:016x}", prediction->event_hash) : "";
}

TEST(Determinism, EventHashesAreTheCommittedOnes) {
  std::map<std::string, std::string> hashes;
  for (const auto& [name, scenario] : scenarios()) hashes[name] = hash_of(scenario);
  const char* update = std::getenv("FORETRAIN_UPDATE_GOLDENS");
  if (update != nullptr && std::string(update) == "1") {
    JsonValue document = JsonValue::make_object();
    for (const auto& [name, hash] : hashes) document.set(name, JsonValue::make_string(hash));
    write_text(kGoldens, to_text(document));
  }
  auto goldens = parse_json_file(kGoldens.string());
  ASSERT_TRUE(goldens) << to_text(goldens.error());
  EXPECT_EQ(goldens->children().size(), hashes.size());
  for (const auto& [name, hash] : hashes) {
    const JsonValue* golden = goldens->find(name);
    ASSERT_NE(golden, nullptr) << name;
    EXPECT_EQ(golden->as_string(), hash) << name;
  }
}

TEST(Determinism, SimulationsSideBySideDoNotDisturbOneAnother) {
  const std::map<std::string, Scenario> all = scenarios();
  std::vector<const Scenario*> list;
  std::vector<std::string> alone;
  for (const auto& [name, scenario] : all) {
    list.push_back(&scenario);
    alone.push_back(hash_of(scenario));
  }
  std::vector<std::string> together(list.size() * 4);
  tbb::parallel_for(std::size_t{0}, together.size(),
                    [&](std::size_t i) { together[i] = hash_of(*list[i % list.size()]); });
  for (std::size_t i = 0; i < together.size(); ++i) EXPECT_EQ(together[i], alone[i % list.size()]);
}

}  // namespace
}  // namespace foretrain::test
