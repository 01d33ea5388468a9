#include "model/scenario/profile_file.h"

#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/base/text.h"
#include "model/json/parse.h"
#include "model/json/reader.h"

namespace foretrain {
namespace {

std::vector<std::string_view> parameter_names() {
  std::vector<std::string_view> names;
  for (const ParameterSpec& spec : profile_parameters()) names.push_back(spec.name);
  return names;
}

void read_parameter(const JsonValue& value, const ParameterSpec& spec, Profile& profile, Errors& errors) {
  ParameterValue result = profile.at(spec.id);
  const Bounds<double> bounds{spec.low, spec.high};
  if (value.is_object()) {
    ObjectReader reader(value, errors);
    const bool good = reader.required("value", result.value, bounds);
    reader.optional("standard_error", result.standard_error, {0.0});
    reader.optional("provenance", result.provenance);
    reader.optional("fitted", result.fitted);
    std::string unit;
    if (reader.optional("unit", unit) && unit != spec.unit) {
      reader.error("unit", fmt::format("is {}; {} is in {}", in_quotes(unit), spec.name, spec.unit),
                   fmt::format("write \"{}\", or leave the unit out", spec.unit));
    }
    if (reader.finish() && good) profile.at(spec.id) = result;
    return;
  }
  if (read_value(value, result.value, errors, bounds)) {
    result.provenance = "given";
    result.standard_error = 0;
    result.fitted = false;
    profile.at(spec.id) = result;
  }
}

void read_correlation(const JsonValue& value, Profile& profile, Errors& errors) {
  ObjectReader reader(value, errors);
  std::vector<std::string> names;
  reader.required_list("parameters", names);
  std::vector<ParameterId> ids;
  for (const std::string& name : names) {
    const ParameterSpec* spec = find_parameter(name);
    if (spec == nullptr) {
      reader.error("parameters", fmt::format("names {}, which is not a profile parameter", in_quotes(name)),
                   did_you_mean(name, parameter_names(), "parameters"));
      continue;
    }
    ids.push_back(spec->id);
  }
  std::vector<double> matrix;
  bool square = true;
  if (const JsonValue* rows = reader.required_array("matrix")) {
    square = rows->children().size() == ids.size();
    for (const JsonValue& row : rows->children()) {
      square = square && row.is_array() && row.children().size() == ids.size();
      for (const JsonValue& cell : row.children()) {
        double number = 0;
        square = read_value(cell, number, errors, Bounds<double>{-1.0, 1.0}) && square;
        matrix.push_back(number);
      }
    }
  }
  const std::size_t n = ids.size();
  for (std::size_t i = 0; square && i < n; ++i) {
    square = matrix[i * n + i] == 1.0;
    for (std::size_t j = 0; square && j < i; ++j)
      square = std::abs(matrix[i * n + j] - matrix[j * n + i]) < 1e-9;
  }
  if (!square && ids.size() == names.size()) {
    reader.error("matrix", fmt::format("is not a symmetric {0} x {0} matrix with 1 on its diagonal", n),
                 "give one row of numbers from -1 to 1 per name in \"parameters\"");
  }
  if (reader.finish() && square && ids.size() == names.size()) {
    profile.correlated = std::move(ids);
    profile.correlation = std::move(matrix);
  }
}

}  // namespace

void read_profile_object(const JsonValue& value, Profile& profile, Errors& errors) {
  ObjectReader reader(value, errors);
  reader.optional("name", profile.name);
  reader.ignore("file");
  std::string text;
  reader.optional("description", text);
  if (const JsonValue* parameters = reader.optional_object("parameters")) {
    for (const JsonValue& child : parameters->children()) {
      const ParameterSpec* spec = find_parameter(child.key());
      if (spec == nullptr) {
        errors.push_back(Error{ErrorCode::input, child.key_where(), "is not a profile parameter",
                               did_you_mean(child.key(), parameter_names(), "parameters")});
        continue;
      }
      read_parameter(child, *spec, profile, errors);
    }
  }
  if (const JsonValue* correlation = reader.optional_object("correlation")) {
    read_correlation(*correlation, profile, errors);
  }
  reader.finish();
}

Expected<Profile> read_profile(const std::string& file) {
  auto document = parse_json_file(file);
  if (!document) return fail(std::move(document.error()));
  Profile profile = default_profile();
  profile.name = file;
  Errors errors;
  read_profile_object(*document, profile, errors);
  if (!errors.empty()) return fail(std::move(errors));
  return profile;
}

JsonValue to_json(const Profile& profile, bool all) {
  JsonValue root = JsonValue::make_object();
  root.set("name", JsonValue::make_string(profile.name));
  JsonValue& parameters = root.set("parameters", JsonValue::make_object());
  for (const ParameterSpec& spec : profile_parameters()) {
    const ParameterValue& value = profile.at(spec.id);
    if (!all && value.provenance == "default") continue;
    JsonValue& entry = parameters.set(std::string(spec.name), JsonValue::make_object());
    entry.set("value", JsonValue::make_number(value.value));
    entry.set("unit", JsonValue::make_string(std::string(spec.unit)));
    entry.set("standard_error", JsonValue::make_number(value.standard_error));
    entry.set("provenance", JsonValue::make_string(value.provenance));
    entry.set("fitted", JsonValue::make_bool(value.fitted));
  }
  const std::size_t n = profile.correlated.size();
  if (n > 0) {
    JsonValue& correlation = root.set("correlation", JsonValue::make_object());
    JsonValue& names = correlation.set("parameters", JsonValue::make_array());
    for (const ParameterId id : profile.correlated) {
      for (const ParameterSpec& spec : profile_parameters()) {
        if (spec.id == id) names.append(JsonValue::make_string(std::string(spec.name)));
      }
    }
    JsonValue& matrix = correlation.set("matrix", JsonValue::make_array());
    for (std::size_t i = 0; i < n; ++i) {
      JsonValue& row = matrix.append(JsonValue::make_array());
      for (std::size_t j = 0; j < n; ++j) row.append(JsonValue::make_number(profile.correlation[i * n + j]));
    }
  }
  return root;
}

}  // namespace foretrain
