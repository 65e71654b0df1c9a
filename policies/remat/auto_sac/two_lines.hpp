// Least-squares fit of a curve by one straight line, or by two lines that meet.
#pragma once

#include <cstddef>
#include <vector>

namespace tidepool {

struct CurvePoint {
  double x = 0, y = 0;
};

struct StraightLine {
  double slope = 0, intercept = 0;
  double at(double x) const { return slope * x + intercept; }
};

/// The continuous function of at most `pieces` (1 or 2) straight pieces with the least sum of squared differences, left
/// piece first. There is at least one point; x increases; a single point gets slope 0. O(n^2). Method: Hudson, "Fitting
/// Segmented Curves Whose Join Points Have to be Estimated", JASA 61, 1966: the pieces meet between two points, at the
/// intersection of their own fits, or else at a point.
std::vector<StraightLine> fit_lines(const std::vector<CurvePoint>& points, std::size_t pieces);

}  // namespace tidepool
