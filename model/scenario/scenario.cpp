#include "model/scenario/scenario.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "model/base/file.h"
#include "model/base/text.h"
#include "model/json/edit.h"
#include "model/json/parse.h"
#include "model/json/reader.h"
#include "model/scenario/fields.h"
#include "model/scenario/profile_file.h"

namespace foretrain {
namespace {

constexpr int kDeepestInheritance = 16;

std::string folder_of(const std::string& file) { return std::filesystem::path(file).parent_path().string(); }

// The document with its chain of "base" scenarios merged below it.
Expected<JsonValue> with_bases(JsonValue document, const std::string& file, int depth) {
  const JsonValue* base = document.find("base");
  if (base == nullptr) return document;
  Errors errors;
  std::string name;
  if (!read_value(*base, name, errors)) return fail(std::move(errors));
  if (depth >= kDeepestInheritance) {
    return fail(Error{
        ErrorCode::input, base->where(),
        fmt::format("leads through more than {} base scenarios; does one name itself?", kDeepestInheritance),
        "remove one \"base\" of the circle"});
  }
  const std::string path = (std::filesystem::path(folder_of(file)) / name).lexically_normal().string();
  auto parsed = parse_json_file(path);
  if (!parsed) {
    Errors located;
    add_located(located, std::move(parsed.error()), base->where());
    return fail(std::move(located));
  }
  auto below = with_bases(std::move(*parsed), path, depth + 1);
  if (!below) return below;
  document.remove("base");
  merge(*below, document);
  return below;
}

// The folder that relative paths inside `value` start from: that of the file it was written in.
std::string origin_folder(const JsonValue& value, const std::string& fallback) {
  const std::string file = value.where().file;
  return file.empty() || file.starts_with("--") ? folder_of(fallback) : folder_of(file);
}

void read_profile_section(const JsonValue& value, const std::string& file, Profile& profile, Errors& errors) {
  const JsonValue* path_value = value.is_string() ? &value : value.find("file");
  if (path_value != nullptr) {
    std::string path;
    if (read_value(*path_value, path, errors)) {
      auto loaded = read_profile(
          (std::filesystem::path(origin_folder(*path_value, file)) / path).lexically_normal().string());
      if (loaded) {
        profile = std::move(*loaded);
      } else {
        add_located(errors, std::move(loaded.error()), path_value->where());
      }
    }
  }
  if (!value.is_string()) read_profile_object(value, profile, errors);
}

// Gives errors that carry only a dotted path the place of the nearest value on that path.
void locate(Errors& errors, const JsonValue& document, const std::string& file) {
  for (Error& error : errors) {
    if (!error.where.file.empty()) continue;
    std::string path = error.where.path;
    const JsonValue* value = find_path(document, path);
    while (value == nullptr && !path.empty()) {
      const std::size_t dot = path.rfind('.');
      path = dot == std::string::npos ? "" : path.substr(0, dot);
      value = find_path(document, path);
    }
    const Location where = value != nullptr ? value->where() : Location{};
    error.where.file = where.file.empty() ? file : where.file;
    error.where.line = where.line;
    error.where.column = where.column;
  }
}

Expected<Scenario> read_document(const JsonValue& document, const std::string& file) {
  Errors errors;
  Scenario scenario;
  scenario.file = file;
  scenario.name = std::filesystem::path(file).stem().string();
  scenario.profile = default_profile();
  ObjectReader reader(document, errors);
  reader.optional("name", scenario.name);
  std::string text;
  reader.optional("description", text);
  if (const JsonValue* model = reader.required_value("model")) {
    read_model(*model, origin_folder(*model, file), scenario.model, errors);
  }
  if (const JsonValue* training = reader.optional_object("training")) {
    read_fields<TrainingSpec>(*training, training_fields(), scenario.training, errors);
  }
  if (const JsonValue* parallel = reader.optional_object("parallel")) {
    read_parallel(*parallel, scenario.parallel, errors);
  }
  if (const JsonValue* cluster = reader.required_value("cluster"))
    read_cluster(*cluster, scenario.cluster, errors);
  if (const JsonValue* profile = reader.optional_value("profile")) {
    read_profile_section(*profile, file, scenario.profile, errors);
  }
  if (const JsonValue* cost = reader.optional_object("cost")) {
    read_fields<CostSpec>(*cost, cost_fields(), scenario.cost, errors);
  }
  if (const JsonValue* run = reader.optional_object("run")) {
    read_fields<RunSpec>(*run, run_fields(), scenario.run, errors);
  }
  reader.finish();
  if (errors.empty()) errors = check(scenario);
  if (!errors.empty()) {
    locate(errors, document, file);
    return fail(std::move(errors));
  }
  return scenario;
}

}  // namespace

Expected<Scenario> parse_scenario(const std::string& text, const std::string& file,
                                  const Overrides& overrides) {
  auto parsed = parse_json(text, file);
  if (!parsed) return fail(std::move(parsed.error()));
  auto document = with_bases(std::move(*parsed), file, 0);
  if (!document) return fail(std::move(document.error()));
  Errors errors;
  for (const auto& [path, value] : overrides) {
    // A section given as plain text ("model": "gpt2") becomes an object when a field below it is set.
    static constexpr std::pair<std::string_view, const char*> kShortForms[] = {
        {"model", "preset"}, {"cluster", "preset"}, {"profile", "file"}};
    for (const auto& [section, key] : kShortForms) {
      JsonValue* existing = document->find(section);
      if (existing == nullptr || !existing->is_string() || !path.starts_with(std::string(section) + "."))
        continue;
      JsonValue object = JsonValue::make_object();
      object.set_origin(existing->where());
      JsonValue text_form = *existing;
      object.set(key, std::move(text_form));
      document->set(std::string(section), std::move(object));
    }
    if (auto set = set_path(*document, path, value); !set) {
      for (Error& error : set.error()) errors.push_back(std::move(error));
    }
  }
  if (!errors.empty()) return fail(std::move(errors));
  return read_document(*document, file);
}

Expected<Scenario> read_scenario(const std::string& file, const Overrides& overrides) {
  auto text = read_file(file);
  if (!text) return fail(std::move(text.error()));
  return parse_scenario(*text, file, overrides);
}

Errors check(const Scenario& scenario) {
  const auto add = [](Errors& into, const std::string& prefix, Errors more) {
    for (Error& error : more) {
      if (!prefix.empty() && !error.where.path.starts_with(prefix)) {
        error.where.path = error.where.path.empty() ? prefix : prefix + "." + error.where.path;
      }
      into.push_back(std::move(error));
    }
  };
  Errors errors;
  add(errors, "model", check(scenario.model));
  if (errors.empty()) add(errors, "", check(scenario.parallel, scenario.model, scenario.training));
  const TrainingSpec& training = scenario.training;
  const std::int64_t world = scenario.parallel.world();
  const std::int64_t gpus = scenario.cluster.gpu_count();
  if (world > gpus) {
    errors.push_back(
        Error{ErrorCode::input,
              {"", 0, 0, "parallel"},
              fmt::format("needs {} GPUs (dp {} x fsdp {} x tp {} x pp {}), but cluster \"{}\" has {}", world,
                          scenario.parallel.dp, scenario.parallel.fsdp, scenario.parallel.tp,
                          scenario.parallel.pp, scenario.cluster.name, gpus),
              "lower a dimension, or raise cluster.nodes or cluster.gpus_per_node"});
  }
  if (training.precision != Precision::fp32 && scenario.cluster.gpu.architecture != GpuArchitecture::cpu) {
    const GpuSpec& gpu = scenario.cluster.gpu;
    const bool bf16 = training.precision == Precision::bf16_amp || training.precision == Precision::bf16;
    const FlopRate rate = bf16 ? gpu.bf16 : training.precision == Precision::tf32 ? gpu.tf32 : gpu.fp16;
    if (!(rate.per_s() > 0)) {
      errors.push_back(
          Error{ErrorCode::input,
                {"", 0, 0, "training.precision"},
                fmt::format("is {}, which {} does not support", name_of(training.precision), gpu.full_name),
                bf16 ? "use fp16_amp or fp32" : "use fp16_amp or fp32"});
    }
  }
  return errors;
}

const std::vector<ScenarioField>& scenario_fields() {
  static const std::vector<ScenarioField> fields = [] {
    std::vector<ScenarioField> all;
    const auto add = [&](std::string_view section, auto table) {
      for (const auto& field : table) {
        all.push_back({fmt::format("{}.{}", section, field.name), std::string(field.type),
                       std::string(field.sentence)});
      }
    };
    all.push_back({"model.preset", "name", "a built-in model; the other model fields change it"});
    all.push_back({"model.import", "path", "a Hugging Face config.json"});
    add("model", model_fields());
    add("training", training_fields());
    add("parallel", parallel_fields());
    add("parallel.ddp", ddp_fields());
    add("parallel.fsdp_options", fsdp_fields());
    all.push_back({"cluster.preset", "name", "a built-in cluster; the other cluster fields change it"});
    all.push_back({"cluster.gpu", "name or object", "the GPU"});
    for (const std::string_view link : {"pcie", "nvlink", "socket_link", "host_memory", "network"}) {
      all.push_back(
          {fmt::format("cluster.{}", link), "name or object", "a link preset, or its bandwidth and latency"});
    }
    add("cluster", cluster_fields());
    all.push_back({"profile.file", "path", "a calibrated profile"});
    for (const ParameterSpec& spec : profile_parameters()) {
      all.push_back({fmt::format("profile.parameters.{}", spec.name),
                     fmt::format("number from {} to {} ({})", spec.low, spec.high, spec.unit),
                     std::string(spec.sentence)});
    }
    add("cost", cost_fields());
    add("run", run_fields());
    return all;
  }();
  return fields;
}

}  // namespace foretrain
