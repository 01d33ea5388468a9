// Scenario files: every form of every section, inheritance, overrides, and where errors point.
#include "model/scenario/scenario.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "model/base/file.h"
#include "model/json/write.h"
#include "model/scenario/profile_file.h"

namespace foretrain {
namespace {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "foretrain_scenario_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return file.string();
  }

 private:
  std::filesystem::path path_;
};

Scenario good(const std::string& text, const Overrides& overrides = {}) {
  auto scenario = parse_scenario(text, "s.json", overrides);
  EXPECT_TRUE(scenario) << (scenario ? "" : to_text(scenario.error()));
  return scenario.value_or(Scenario{});
}

TEST(Scenario, ReadsEverySectionAndKeepsDefaultsElsewhere) {
  const Scenario s = good(R"({
    "name": "all",
    "model": {"preset": "gpt2", "layers": 6},
    "training": {"micro_batch_size": 8, "micro_batches": 2, "precision": "bf16_amp", "attention": "flash",
                 "optimizer": "adamw_fused", "recompute": "full", "dropout": false, "clip_gradients": true},
    "parallel": {"dp": 2, "tp": 2, "pp": 2, "zero_stage": 1, "schedule": "gpipe", "sequence_parallel": true,
                 "ddp": {"bucket": "40 MiB", "overlap": false}},
    "cluster": {"preset": "8xa100_80_sxm", "price_per_gpu_hour": "2 USD/h"},
    "profile": {"parameters": {"memory_efficiency": 0.8}},
    "cost": {"tokens": 1e9, "electricity": "0.2 USD/kWh"},
    "run": {"steps": 10}
  })");
  EXPECT_EQ(s.model.layers, 6);
  EXPECT_EQ(s.model.hidden, 768);
  EXPECT_EQ(s.training.precision, Precision::bf16_amp);
  EXPECT_EQ(s.parallel.ddp.bucket, Bytes(40 * 1048576));
  EXPECT_EQ(s.parallel.ddp.first_bucket, Bytes(1048576));
  EXPECT_EQ(s.parallel.world(), 8);
  EXPECT_EQ(s.cluster.gpu_count(), 8);
  EXPECT_DOUBLE_EQ(s.cluster.price_per_gpu_hour_usd, 2.0);
  EXPECT_DOUBLE_EQ(s.profile[ParameterId::memory_efficiency], 0.8);
  EXPECT_DOUBLE_EQ(s.cost.electricity_usd_per_kwh, 0.2);
}

TEST(Scenario, SizesAloneMakeAModelWithTheUsualDefaults) {
  const Scenario s =
      good(R"({"model": {"layers": 2, "hidden": 256, "heads": 4, "vocab": 1000, "max_positions": 512},
                              "cluster": "4xa30_pcie"})");
  EXPECT_EQ(s.model.kv_heads, 4);
  EXPECT_EQ(s.model.head_dim, 64);
  EXPECT_EQ(s.model.ffn_hidden, 1024);
}

TEST(Scenario, OverridesWinInOrderAndOpenShortForms) {
  const std::string text = R"({"model": "gpt2", "cluster": "4xa30_pcie", "parallel": {"dp": 2}})";
  const Scenario s = good(text, {{"parallel.dp", "3"},
                                 {"parallel.dp", "4"},
                                 {"model.layers", "3"},
                                 {"cluster.nodes", "2"},
                                 {"cluster.pcie", R"({"preset": "pcie_gen5_x16", "latency": "2 us"})"}});
  EXPECT_EQ(s.parallel.dp, 4);
  EXPECT_EQ(s.model.layers, 3);
  EXPECT_EQ(s.cluster.node_count(), 2);
  double widest = 0;
  for (const ClusterEdge& edge : s.cluster.edges) {
    if (edge.link.link_class == LinkClass::pcie) widest = std::max(widest, edge.link.bandwidth.gb_per_s());
  }
  EXPECT_NEAR(widest, 63.015, 1e-9);
}

TEST(Scenario, InheritsFromABaseWithPathsRelativeToEachFile) {
  const Folder folder;
  folder.write("base/p.json", R"({"parameters": {"host_time_per_op_us": 3.5}})");
  folder.write("base/base.json", R"({"model": "gpt2", "cluster": "4xa30_pcie", "profile": "p.json",
                                     "training": {"micro_batch_size": 2, "sequence_length": 256}})");
  folder.write("middle.json", R"({"base": "base/base.json", "training": {"micro_batch_size": 4}})");
  const auto s = read_scenario(folder.write("top.json", R"({"base": "middle.json", "parallel": {"dp": 4}})"));
  ASSERT_TRUE(s) << to_text(s.error());
  EXPECT_EQ(s->training.micro_batch_size, 4);
  EXPECT_EQ(s->training.sequence_length, 256);
  EXPECT_EQ(s->parallel.dp, 4);
  EXPECT_DOUBLE_EQ(s->profile[ParameterId::host_time_per_op_us], 3.5);
}

TEST(Scenario, AFieldOfAProfileFileCanBeOverridden) {
  const Folder folder;
  folder.write("p.json", R"({"parameters": {"host_time_per_op_us": 3.5, "memory_efficiency": 0.7}})");
  const auto s = read_scenario(
      folder.write("s.json", R"({"model": "gpt2", "cluster": "4xa30_pcie", "profile": "p.json"})"),
      {{"profile.parameters.memory_efficiency", "0.6"}});
  ASSERT_TRUE(s) << to_text(s.error());
  EXPECT_DOUBLE_EQ(s->profile[ParameterId::host_time_per_op_us], 3.5);
  EXPECT_DOUBLE_EQ(s->profile[ParameterId::memory_efficiency], 0.6);
}

TEST(Scenario, ImportsHuggingFaceConfigs) {
  const Folder folder;
  folder.write("hf/config.json", R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
    "num_attention_heads": 32, "num_hidden_layers": 32, "max_position_embeddings": 4096, "vocab_size": 32000,
    "tie_word_embeddings": false, "torch_dtype": "float16"})");
  const auto s = read_scenario(
      folder.write("s.json", R"({"model": {"import": "hf/config.json"}, "cluster": "8xa100_80_sxm"})"));
  ASSERT_TRUE(s) << to_text(s.error());
  EXPECT_EQ(parameter_count(s->model), 6738415616);  // Llama-2 7B as published
}

TEST(Scenario, AnyGraphIsACluster) {
  const Scenario s = good(R"({"model": "gpt2", "parallel": {"dp": 2}, "cluster": {"gpu": "a30", "graph": {
    "vertices": [{"name": "a", "kind": "gpu"}, {"name": "b", "kind": "gpu", "node": 1}, {"name": "s", "kind": "network_switch"}],
    "edges": [{"a": "a", "b": "s", "link": "ethernet_100"},
              {"a": "s", "b": "b", "link": {"class": "network", "bandwidth": "10 Gbit/s", "latency": "3 us", "half_duplex": true}}]}}})");
  EXPECT_EQ(s.cluster.gpu_count(), 2);
  EXPECT_DOUBLE_EQ(s.cluster.edges[1].link.bandwidth.gb_per_s(), 1.25);
  EXPECT_TRUE(s.cluster.edges[1].link.half_duplex);
}

// Errors across sections stand at the field that is to be changed, with its line and column.
TEST(Scenario, ErrorsAcrossSectionsPointAtAField) {
  const auto s = parse_scenario(
      "{\n  \"model\": \"gpt2\",\n  \"parallel\": {\n    \"dp\": 8\n  },\n  \"cluster\": \"4xa30_pcie\"\n}",
      "s.json");
  ASSERT_FALSE(s);
  ASSERT_EQ(s.error().size(), 1u);
  EXPECT_EQ(s.error()[0].where.line, 3);
  EXPECT_EQ(s.error()[0].where.path, "parallel");
  EXPECT_NE(s.error()[0].message.find("needs 8 GPUs"), std::string::npos);
}

TEST(Scenario, AllErrorsAreReportedAtOnce) {
  const auto s = parse_scenario(
      R"({"model": "gpt9", "training": {"precision": "fp8", "micro_batch_size": 0}, "cluster": "nowhere",
                                    "cost": {"tokens": -1}, "unknown": 1})",
      "s.json");
  ASSERT_FALSE(s);
  EXPECT_EQ(s.error().size(), 6u) << to_text(s.error());
}

TEST(Scenario, EveryFieldIsListedOnceWithItsMeaning) {
  std::set<std::string> paths;
  for (const ScenarioField& field : scenario_fields()) {
    EXPECT_TRUE(paths.insert(field.path).second) << field.path;
    EXPECT_FALSE(field.type.empty()) << field.path;
    EXPECT_FALSE(field.sentence.empty()) << field.path;
  }
  for (const char* path : {"parallel.ddp.bucket", "training.precision", "cluster.nodes",
                           "profile.parameters.memory_efficiency"}) {
    EXPECT_TRUE(paths.contains(path)) << path;
  }
}

TEST(Profile, ReadsBackWhatItWrote) {
  Profile profile = default_profile();
  profile.name = "mine";
  ParameterValue& value = profile.at(ParameterId::memory_efficiency);
  value = ParameterValue{0.123456789, 0.01, "measured here", true};
  profile.at(ParameterId::pcie_efficiency) = ParameterValue{0.5, 0.02, "fit", true};
  profile.correlated = {ParameterId::memory_efficiency, ParameterId::pcie_efficiency};
  profile.correlation = {1, -0.25, -0.25, 1};
  const Folder folder;
  const auto read = read_profile(folder.write("p.json", to_text(to_json(profile))));
  ASSERT_TRUE(read) << to_text(read.error());
  EXPECT_EQ(read->at(ParameterId::memory_efficiency).value, 0.123456789);
  EXPECT_EQ(read->at(ParameterId::memory_efficiency).provenance, "measured here");
  EXPECT_TRUE(read->at(ParameterId::memory_efficiency).fitted);
  EXPECT_EQ(read->correlated, profile.correlated);
  EXPECT_EQ(read->correlation, profile.correlation);
  EXPECT_EQ((*read)[ParameterId::nvlink_efficiency], default_profile()[ParameterId::nvlink_efficiency]);
}

TEST(Profile, EveryDefaultLiesWithinItsBounds) {
  std::set<std::string_view> names;
  for (const ParameterSpec& spec : profile_parameters()) {
    EXPECT_TRUE(names.insert(spec.name).second);
    EXPECT_LE(spec.low, spec.fallback) << spec.name;
    EXPECT_LE(spec.fallback, spec.high) << spec.name;
    EXPECT_FALSE(spec.sentence.empty());
  }
}

}  // namespace
}  // namespace foretrain
