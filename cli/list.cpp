// foretrain list: the built-in models, GPUs, links, clusters, profile parameters and scenario fields.
#include <memory>

#include <fmt/format.h>

#include "cli/output.h"
#include "cli/verbs.h"
#include "model/arch/transformer.h"
#include "model/base/format.h"
#include "model/hardware/cluster.h"
#include "model/hardware/profile.h"
#include "model/scenario/scenario.h"

namespace foretrain {
namespace {

struct Listing {
  TextTable table;
  JsonValue json;
};

std::string or_dash(double value, const std::string& text) { return value > 0 ? text : "-"; }

Listing models() {
  Listing out{TextTable({"<model", "parameters", "layers", "hidden", "heads", "kv heads", "FFN", "vocabulary",
                         "positions"}),
              JsonValue::make_array()};
  for (const TransformerConfig& m : model_presets()) {
    const std::int64_t n = parameter_count(m);
    out.table.row({m.name, format_whole(n), format_whole(m.layers), format_whole(m.hidden),
                   format_whole(m.heads), format_whole(m.kv_heads), format_whole(m.ffn_hidden),
                   format_whole(m.vocab), format_whole(m.max_positions)});
    out.json.append(json_object({{"name", json(m.name)},
                                 {"parameters", json(n)},
                                 {"layers", json(m.layers)},
                                 {"hidden", json(m.hidden)},
                                 {"heads", json(m.heads)},
                                 {"kv_heads", json(m.kv_heads)},
                                 {"ffn_hidden", json(m.ffn_hidden)},
                                 {"vocab", json(m.vocab)},
                                 {"max_positions", json(m.max_positions)}}));
  }
  return out;
}

Listing gpus() {
  Listing out{
      TextTable({"<gpu", "<name", "SMs", "fp32", "TF32", "fp16", "bf16", "memory", "bandwidth", "power"}),
      JsonValue::make_array()};
  for (const GpuSpec& g : gpu_presets()) {
    const auto rate = [](FlopRate r) { return or_dash(r.per_s(), fmt::format("{:g} TFLOPS", r.tflops())); };
    out.table.row({g.name, g.full_name, fmt::format("{}", g.sm_count), rate(g.fp32), rate(g.tf32),
                   rate(g.fp16), rate(g.bf16), format_bytes(g.memory), format_bandwidth(g.memory_bandwidth),
                   format_power(g.power_w)});
    out.json.append(json_object({{"name", json(g.name)},
                                 {"full_name", json(g.full_name)},
                                 {"sm_count", json(static_cast<std::int64_t>(g.sm_count))},
                                 {"fp32_tflops", json(g.fp32.tflops())},
                                 {"tf32_tflops", json(g.tf32.tflops())},
                                 {"fp16_tflops", json(g.fp16.tflops())},
                                 {"bf16_tflops", json(g.bf16.tflops())},
                                 {"memory_gib", json(g.memory.gib())},
                                 {"memory_bandwidth_gb_per_s", json(g.memory_bandwidth.gb_per_s())},
                                 {"power_w", json(g.power_w)}}));
  }
  return out;
}

Listing links() {
  Listing out{TextTable({"<link", "<class", "bandwidth per direction", "latency"}), JsonValue::make_array()};
  for (const LinkSpec& l : link_presets()) {
    out.table.row(
        {l.name, std::string(name_of(l.link_class)), format_bandwidth(l.bandwidth), format_time(l.latency)});
    out.json.append(json_object({{"name", json(l.name)},
                                 {"class", json(name_of(l.link_class))},
                                 {"bandwidth_gb_per_s", json(l.bandwidth.gb_per_s())},
                                 {"latency_us", json(l.latency.us())}}));
  }
  return out;
}

std::string_view intra_name(IntraNode kind) {
  switch (kind) {
    case IntraNode::pcie:
      return "PCIe";
    case IntraNode::nvlink_bridge_pairs:
      return "NVLink pairs";
    case IntraNode::nvlink_mesh:
      return "NVLink mesh";
    case IntraNode::nvswitch:
      return "NVSwitch";
  }
  return "?";
}

Listing clusters() {
  Listing out{TextTable({"<cluster", "<gpu", "GPUs per node", "<inside", "sockets", "NICs", "<network"}),
              JsonValue::make_array()};
  for (const ClusterSpec& c : cluster_presets()) {
    out.table.row({c.name, c.gpu.name, fmt::format("{}", c.gpus_per_node),
                   std::string(intra_name(c.intra_node)), fmt::format("{}", c.sockets),
                   fmt::format("{}", c.nics_per_node), c.network.name});
    out.json.append(json_object({{"name", json(c.name)},
                                 {"gpu", json(c.gpu.name)},
                                 {"gpus_per_node", json(static_cast<std::int64_t>(c.gpus_per_node))},
                                 {"intra_node", json(intra_name(c.intra_node))},
                                 {"network", json(c.network.name)}}));
  }
  return out;
}

Listing parameters() {
  Listing out{TextTable({"<parameter", "<unit", "default", "from", "to", "<meaning"}),
              JsonValue::make_array()};
  for (const ParameterSpec& p : profile_parameters()) {
    out.table.row({std::string(p.name), std::string(p.unit), fmt::format("{:g}", p.fallback),
                   fmt::format("{:g}", p.low), fmt::format("{:g}", p.high), std::string(p.sentence)});
    out.json.append(json_object({{"name", json(p.name)},
                                 {"unit", json(p.unit)},
                                 {"default", json(p.fallback)},
                                 {"low", json(p.low)},
                                 {"high", json(p.high)},
                                 {"sentence", json(p.sentence)}}));
  }
  return out;
}

Listing fields() {
  Listing out{TextTable({"<field", "<type", "<meaning"}), JsonValue::make_array()};
  for (const ScenarioField& f : scenario_fields()) {
    out.table.row({f.path, f.type, f.sentence});
    out.json.append(
        json_object({{"path", json(f.path)}, {"type", json(f.type)}, {"sentence", json(f.sentence)}}));
  }
  return out;
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "list",
      "Lists the built-in models, GPUs, links, clusters, and the names that files may use.\n\n"
      "Examples:\n  foretrain list models\n  foretrain list clusters --json -\n  foretrain list fields\n");
  struct Options {
    std::string what;
    OutputOptions output;
  };
  auto options = std::make_shared<Options>();
  static constexpr std::pair<const char*, Listing (*)()> kKinds[] = {
      {"models", models},         {"gpus", gpus},    {"links", links}, {"clusters", clusters},
      {"parameters", parameters}, {"fields", fields}};
  std::vector<std::string> names;
  for (const auto& [name, unused] : kKinds) names.emplace_back(name);
  verb->add_option("what", options->what, "models, gpus, links, clusters, parameters or fields")
      ->required()
      ->check(CLI::IsMember(names));
  add_output_options(*verb, options->output);
  verb->callback([options, &action] {
    action = [options] {
      for (const auto& [name, make] : kKinds) {
        if (options->what != name) continue;
        const Listing listing = make();
        return write_output(options->output, listing.table.to_text(), listing.json, listing.table.to_csv());
      }
      return 2;
    };
  });
}

}  // namespace foretrain
