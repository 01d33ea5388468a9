// Between a parameter's value and the coordinate that the solver moves (linear, logarithm or logit).
#pragma once

#include "calibrate/fit/least_squares.h"

namespace foretrain {

// Value to coordinate and back; values outside the bounds are moved inside.
double to_search(const FitParameter& parameter, double value);
double to_value(const FitParameter& parameter, double coordinate);
// d value / d coordinate.
double value_slope(const FitParameter& parameter, double coordinate);

// Bounds of the coordinate.
double search_low(const FitParameter& parameter);
double search_high(const FitParameter& parameter);
double search_width(const FitParameter& parameter);
// The coordinate at `share` (0..1) of the way between the bounds.
double start_point(const FitParameter& parameter, double share);

}  // namespace foretrain
