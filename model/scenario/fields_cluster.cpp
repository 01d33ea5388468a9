// The section cluster: a preset, a regular cluster by its numbers, or any graph.
#include <map>

#include <fmt/format.h>

#include "model/base/text.h"
#include "model/scenario/fields.h"

namespace foretrain {
namespace {

constexpr EnumName<IntraNode> kIntraNode[] = {{"pcie", IntraNode::pcie},
                                              {"nvlink_bridge_pairs", IntraNode::nvlink_bridge_pairs},
                                              {"nvlink_mesh", IntraNode::nvlink_mesh},
                                              {"nvswitch", IntraNode::nvswitch}};
constexpr EnumName<VertexKind> kVertices[] = {{"gpu", VertexKind::gpu},
                                              {"pcie_switch", VertexKind::pcie_switch},
                                              {"host_bridge", VertexKind::host_bridge},
                                              {"nvswitch", VertexKind::nvswitch},
                                              {"nic", VertexKind::nic},
                                              {"network_switch", VertexKind::network_switch}};
constexpr EnumName<LinkClass> kLinkClasses[] = {{"pcie", LinkClass::pcie},
                                                {"nvlink", LinkClass::nvlink},
                                                {"host", LinkClass::host},
                                                {"network", LinkClass::network},
                                                {"memory", LinkClass::memory}};
constexpr EnumName<GpuArchitecture> kArchitectures[] = {
    {"cpu", GpuArchitecture::cpu},         {"kepler", GpuArchitecture::kepler},
    {"maxwell", GpuArchitecture::maxwell}, {"pascal", GpuArchitecture::pascal},
    {"volta", GpuArchitecture::volta},     {"turing", GpuArchitecture::turing},
    {"ampere", GpuArchitecture::ampere},   {"ada", GpuArchitecture::ada},
    {"hopper", GpuArchitecture::hopper},   {"blackwell", GpuArchitecture::blackwell}};

template <typename Preset>
std::vector<std::string_view> names_of(std::span<const Preset> presets) {
  std::vector<std::string_view> names;
  for (const Preset& preset : presets) names.push_back(preset.name);
  return names;
}

// Sets `into` to a copy of the named preset.
template <typename Preset>
bool use_preset(const JsonValue& value, std::span<const Preset> presets,
                const Preset* (*find)(std::string_view), std::string_view what, Preset& into,
                Errors& errors) {
  std::string name;
  if (!read_value(value, name, errors)) return false;
  const Preset* preset = find(name);
  if (preset == nullptr) {
    const auto names = names_of(presets);
    errors.push_back(Error{ErrorCode::input, value.where(),
                           fmt::format("is {}, which is no {} preset", in_quotes(name), what),
                           did_you_mean(name, names, fmt::format("{}s", what))});
    return false;
  }
  into = *preset;
  return true;
}

bool read_link(const JsonValue& value, LinkSpec& link, Errors& errors) {
  if (value.is_string()) return use_preset(value, link_presets(), find_link, "link", link, errors);
  const std::size_t before = errors.size();
  ObjectReader reader(value, errors);
  if (const JsonValue* preset = reader.optional_value("preset")) {
    use_preset(*preset, link_presets(), find_link, "link", link, errors);
  } else {
    link = LinkSpec{};
    link.name = "custom";
  }
  reader.optional("name", link.name);
  reader.optional_choice("class", link.link_class, kLinkClasses);
  reader.optional("bandwidth", link.bandwidth, {Bandwidth::bytes_per_s(1), Bandwidth::bytes_per_s(1e15)});
  reader.optional("latency", link.latency, {Time{}, Time::from_seconds(10)});
  reader.optional("half_duplex", link.half_duplex);
  if (!reader.has("preset") && !reader.has("bandwidth")) {
    reader.error("bandwidth", "is missing",
                 "give it, such as \"bandwidth\": \"16 GB/s\", or name a link preset");
  }
  reader.finish();
  return errors.size() == before;
}

bool read_gpu(const JsonValue& value, GpuSpec& gpu, Errors& errors) {
  if (value.is_string()) return use_preset(value, gpu_presets(), find_gpu, "GPU", gpu, errors);
  const std::size_t before = errors.size();
  ObjectReader reader(value, errors);
  const bool preset = reader.has("preset");
  if (const JsonValue* name = reader.optional_value("preset")) {
    use_preset(*name, gpu_presets(), find_gpu, "GPU", gpu, errors);
  }
  if (!preset) gpu = GpuSpec{};
  const Bounds<FlopRate> rates{FlopRate::per_s(0), FlopRate::per_s(1e18)};
  const Bounds<FlopRate> above{FlopRate::per_s(1), FlopRate::per_s(1e18)};
  reader.optional("name", gpu.name);
  gpu.full_name = reader.has("full_name") || preset ? gpu.full_name : gpu.name;
  reader.optional("full_name", gpu.full_name);
  reader.optional_choice("architecture", gpu.architecture, kArchitectures);
  const auto field = [&](std::string_view key, auto& into, const auto& bounds) {
    preset ? reader.optional(key, into, bounds) : reader.required(key, into, bounds);
  };
  field("sm_count", gpu.sm_count, Bounds<int>{1, 100000});
  field("fp32", gpu.fp32, above);
  reader.optional("tf32", gpu.tf32, rates);
  field("fp16", gpu.fp16, above);
  reader.optional("bf16", gpu.bf16, rates);
  field("memory_bandwidth", gpu.memory_bandwidth,
        Bounds<Bandwidth>{Bandwidth::bytes_per_s(1e6), Bandwidth::bytes_per_s(1e15)});
  field("memory", gpu.memory, Bounds<Bytes>{kMiB, Bytes(std::int64_t{1} << 50)});
  reader.optional("l2_cache", gpu.l2_cache, {Bytes(0), Bytes(std::int64_t{1} << 40)});
  double hertz = gpu.boost_clock_mhz * 1e6;
  if (reader.optional_quantity("boost_clock", Dimension::frequency, hertz, {1e6, 1e11}))
    gpu.boost_clock_mhz = hertz * 1e-6;
  if (!preset && !reader.has("boost_clock"))
    reader.error("boost_clock", "is missing", "give it, such as \"1440 MHz\"");
  reader.optional_quantity("power", Dimension::power, gpu.power_w, {0.0, 1e6});
  reader.finish();
  return errors.size() == before;
}

using C = ClusterSpec;
constexpr Field<ClusterSpec> kCluster[] = {
    {"name", "text", "name shown in reports", Plain<&C::name>::read},
    {"nodes", "whole number from 1", "machines", Bounded<&C::nodes, 1, 1 << 20>::read},
    {"gpus_per_node", "whole number from 1", "GPUs in each", Bounded<&C::gpus_per_node, 1, 1024>::read},
    {"intra_node", "pcie, nvlink_bridge_pairs, nvlink_mesh or nvswitch", "how GPUs of a machine are joined",
     Choice<&C::intra_node, kIntraNode>::read},
    {"gpus_per_pcie_switch", "whole number from 0", "0: GPUs hang on the host bridge directly",
     Bounded<&C::gpus_per_pcie_switch, 0, 1024>::read},
    {"sockets", "whole number from 1", "host bridges per machine", Bounded<&C::sockets, 1, 64>::read},
    {"peer_to_peer", "true or false", "GPUs copy to each other over PCIe; false: through host memory",
     Plain<&C::peer_to_peer>::read},
    {"nics_per_node", "whole number from 1", "network cards per machine",
     Bounded<&C::nics_per_node, 1, 64>::read},
    {"oversubscription", "number from 1", "of the network's core; 2 is half bisection",
     Bounded<&C::oversubscription, 1, 1000>::read},
    {"nodes_per_leaf", "whole number from 1", "machines per leaf switch",
     Bounded<&C::nodes_per_leaf, 1, 1 << 16>::read},
    {"price_per_gpu_hour", "price such as \"1.50 USD/h\"", "price of one GPU for one hour",
     [](ObjectReader& r, std::string_view n, ClusterSpec& c) {
       return r.optional_quantity(n, Dimension::price_per_hour, c.price_per_gpu_hour_usd);
     }},
    {"power_usage_effectiveness", "number from 1", "facility power over device power",
     Bounded<&C::power_usage_effectiveness, 1, 10>::read},
};

// Adds errors about fields of the object at `where`: their paths go below its path.
void add_below(Errors& errors, Errors more, const Location& where) {
  for (Error& error : more) {
    const std::string field = std::move(error.where.path);
    error.where = where;
    if (!field.empty()) error.where.path += "." + field;
    errors.push_back(std::move(error));
  }
}

void read_graph(const JsonValue& value, Cluster& cluster, Errors& errors) {
  ObjectReader reader(value, errors);
  std::map<std::string, std::int32_t> index;
  if (const JsonValue* vertices = reader.required_array("vertices")) {
    for (const JsonValue& item : vertices->children()) {
      ClusterVertex vertex;
      ObjectReader fields(item, errors);
      fields.required("name", vertex.name);
      fields.required_choice("kind", vertex.kind, kVertices);
      vertex.node = vertex.kind == VertexKind::network_switch ? -1 : 0;
      fields.optional("node", vertex.node, {-1, 1 << 20});
      if (!index.emplace(vertex.name, static_cast<std::int32_t>(cluster.vertices.size())).second) {
        fields.error("name", fmt::format("is {} a second time", in_quotes(vertex.name)),
                     "give every vertex its own name");
      }
      fields.finish();
      cluster.vertices.push_back(std::move(vertex));
    }
  }
  std::vector<std::string_view> names;
  for (const auto& [name, unused] : index) names.push_back(name);
  if (const JsonValue* edges = reader.required_array("edges")) {
    for (const JsonValue& item : edges->children()) {
      ClusterEdge edge;
      ObjectReader fields(item, errors);
      const auto end = [&](std::string_view key, std::int32_t& into) {
        std::string name;
        if (!fields.required(key, name)) return;
        const auto found = index.find(name);
        if (found == index.end()) {
          fields.error(key, fmt::format("is {}, which is no vertex", in_quotes(name)),
                       did_you_mean(name, names, "vertices"));
        } else {
          into = found->second;
        }
      };
      end("a", edge.a);
      end("b", edge.b);
      if (const JsonValue* link = fields.required_value("link")) read_link(*link, edge.link, errors);
      if (edge.a >= 0 && edge.a == edge.b)
        fields.error("b", "is the same vertex as \"a\"", "join two different vertices");
      fields.finish();
      cluster.edges.push_back(std::move(edge));
    }
  }
  reader.finish();
}

}  // namespace

std::span<const Field<ClusterSpec>> cluster_fields() { return kCluster; }

bool read_cluster(const JsonValue& value, Cluster& cluster, Errors& errors) {
  const std::size_t before = errors.size();
  ClusterSpec spec;
  if (value.is_string()) {
    if (!use_preset(value, cluster_presets(), find_cluster, "cluster", spec, errors)) return false;
    cluster = build(spec);
    return true;
  }
  const JsonValue* preset = value.find("preset");
  const JsonValue* graph = value.find("graph");
  if (preset != nullptr) use_preset(*preset, cluster_presets(), find_cluster, "cluster", spec, errors);
  if (preset == nullptr) spec.name = "custom";
  read_fields<ClusterSpec>(
      value, cluster_fields(), spec, errors,
      {"preset", "graph", "gpu", "pcie", "nvlink", "socket_link", "host_memory", "network"});
  const auto link = [&](std::string_view key, LinkSpec& into) {
    if (const JsonValue* child = value.find(key)) read_link(*child, into, errors);
  };
  link("pcie", spec.pcie);
  link("nvlink", spec.nvlink);
  link("socket_link", spec.socket_link);
  link("host_memory", spec.host_memory);
  link("network", spec.network);
  const JsonValue* gpu = value.find("gpu");
  if (gpu != nullptr) read_gpu(*gpu, spec.gpu, errors);
  if (value.is_object() && gpu == nullptr && preset == nullptr) {
    Location where = value.where();
    where.path += ".gpu";
    errors.push_back(
        Error{ErrorCode::input, where, "is missing",
              "name a GPU such as \"a100_80_sxm\" or a cluster preset (`foretrain list` shows both)"});
  }
  if (errors.size() != before) return false;
  if (graph != nullptr) {
    cluster = Cluster{};
    cluster.name = spec.name;
    cluster.gpu = spec.gpu;
    cluster.peer_to_peer = spec.peer_to_peer;
    cluster.price_per_gpu_hour_usd = spec.price_per_gpu_hour_usd;
    cluster.power_usage_effectiveness = spec.power_usage_effectiveness;
    read_graph(*graph, cluster, errors);
    if (errors.size() == before) add_below(errors, check(cluster), graph->where());
  } else {
    add_below(errors, check(spec), value.where());
    if (errors.size() == before) cluster = build(spec);
  }
  return errors.size() == before;
}

}  // namespace foretrain
