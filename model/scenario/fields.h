// Fields of a scenario's sections, each declared once: the same table reads the file, lists the fields for
// help and docs, and gives did-you-mean its names.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/json/reader.h"
#include "model/scenario/scenario.h"

namespace foretrain {

template <typename Section>
struct Field {
  std::string_view name;
  std::string_view type;  // "whole number", "size", "one of fp32, tf32, ..."
  std::string_view sentence;
  bool (*read)(ObjectReader& reader, std::string_view name, Section& section);
};

// Reads every field that is there; keys of `besides` are known but read elsewhere. True when no error was
// added.
template <typename Section>
bool read_fields(const JsonValue& value, std::span<const Field<Section>> fields, Section& section,
                 Errors& errors, std::initializer_list<std::string_view> besides = {}) {
  ObjectReader reader(value, errors);
  for (const Field<Section>& field : fields) field.read(reader, field.name, section);
  for (const std::string_view name : besides) reader.ignore(name);
  return reader.finish();
}

// The section and type of a pointer to member.
template <auto M>
struct Member;
template <typename S, typename T, T S::*M>
struct Member<M> {
  using Section = S;
  using Type = T;
};

// A reader of member M with bounds.
template <auto M, auto Low, auto High>
struct Bounded {
  using T = typename Member<M>::Type;
  static bool read(ObjectReader& reader, std::string_view name, typename Member<M>::Section& section) {
    return reader.optional(name, section.*M, Bounds<T>{static_cast<T>(Low), static_cast<T>(High)});
  }
};
// A reader of member M without bounds (bool, string, quantity).
template <auto M>
struct Plain {
  static bool read(ObjectReader& reader, std::string_view name, typename Member<M>::Section& section) {
    return reader.optional(name, section.*M);
  }
};
// A reader of enum member M by its table of names.
template <auto M, auto& Names>
struct Choice {
  static bool read(ObjectReader& reader, std::string_view name, typename Member<M>::Section& section) {
    return reader.optional_choice(name, section.*M, Names);
  }
};

std::span<const Field<TransformerConfig>> model_fields();
std::span<const Field<TrainingSpec>> training_fields();
std::span<const Field<ParallelPlan>> parallel_fields();
std::span<const Field<DdpOptions>> ddp_fields();
std::span<const Field<FsdpOptions>> fsdp_fields();
std::span<const Field<ClusterSpec>> cluster_fields();
std::span<const Field<CostSpec>> cost_fields();
std::span<const Field<RunSpec>> run_fields();

// One reader per section. `folder` is where relative paths start. Each returns true when it added no error.
bool read_model(const JsonValue& value, const std::string& folder, TransformerConfig& model, Errors& errors);
bool read_parallel(const JsonValue& value, ParallelPlan& plan, Errors& errors);
bool read_cluster(const JsonValue& value, Cluster& cluster, Errors& errors);

}  // namespace foretrain
