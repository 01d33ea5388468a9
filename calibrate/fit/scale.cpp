#include "calibrate/fit/scale.h"

#include <algorithm>
#include <cmath>

namespace foretrain {
namespace {
// The logit coordinate of the bounds themselves is infinite; the search ends here (1e-5 of the width away).
constexpr double kLogitEnd = 11.5;
}  // namespace

double to_search(const FitParameter& parameter, double value) {
  const double inside = std::clamp(value, parameter.low, parameter.high);
  switch (parameter.scale) {
    case FitScale::log:
      return std::log(inside);
    case FitScale::logit: {
      const double share = (inside - parameter.low) / (parameter.high - parameter.low);
      if (share <= 0) return -kLogitEnd;
      if (share >= 1) return kLogitEnd;
      return std::clamp(std::log(share / (1 - share)), -kLogitEnd, kLogitEnd);
    }
    case FitScale::linear:
      break;
  }
  return inside;
}

double to_value(const FitParameter& parameter, double coordinate) {
  double value = coordinate;
  if (parameter.scale == FitScale::log) value = std::exp(coordinate);
  if (parameter.scale == FitScale::logit)
    value = parameter.low + (parameter.high - parameter.low) / (1 + std::exp(-coordinate));
  return std::clamp(value, parameter.low, parameter.high);
}

double value_slope(const FitParameter& parameter, double coordinate) {
  switch (parameter.scale) {
    case FitScale::log:
      return std::exp(coordinate);
    case FitScale::logit: {
      const double share = 1 / (1 + std::exp(-coordinate));
      return (parameter.high - parameter.low) * share * (1 - share);
    }
    case FitScale::linear:
      break;
  }
  return 1;
}

double search_low(const FitParameter& parameter) { return to_search(parameter, parameter.low); }
double search_high(const FitParameter& parameter) { return to_search(parameter, parameter.high); }
double search_width(const FitParameter& parameter) { return search_high(parameter) - search_low(parameter); }

double start_point(const FitParameter& parameter, double share) {
  if (parameter.scale == FitScale::logit) {
    // Uniform in value: most of a logit axis lies next to the ends.
    return to_search(parameter, parameter.low + share * (parameter.high - parameter.low));
  }
  return search_low(parameter) + share * search_width(parameter);
}

}  // namespace foretrain
