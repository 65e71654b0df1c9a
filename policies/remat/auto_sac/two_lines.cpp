#include "policies/remat/auto_sac/two_lines.hpp"

#include <cmath>
#include <optional>
#include <span>

namespace tidepool {
namespace {

StraightLine fit_line(std::span<const CurvePoint> points) {
  const auto n = static_cast<double>(points.size());
  double x = 0, y = 0;
  for (const CurvePoint& point : points) x += point.x / n, y += point.y / n;
  double xx = 0, xy = 0;
  for (const CurvePoint& point : points) {
    xx += (point.x - x) * (point.x - x);
    xy += (point.x - x) * (point.y - y);
  }
  const double slope = xx > 0 ? xy / xx : 0;
  return {slope, y - slope * x};
}

/// The best two lines that meet at a given x: y = a + b (x - at) on the left, a + c (x - at) on the right.
std::vector<StraightLine> fit_meeting(std::span<const CurvePoint> points, double at) {
  double n = 0, y = 0, left = 0, right = 0, left_square = 0, right_square = 0, left_y = 0, right_y = 0;
  for (const CurvePoint& point : points) {
    const double distance = point.x - at;
    n += 1, y += point.y;
    (distance < 0 ? left : right) += distance;
    (distance < 0 ? left_square : right_square) += distance * distance;
    (distance < 0 ? left_y : right_y) += distance * point.y;
  }
  // The normal equations, with the two slopes eliminated.
  const double weight = n - left * left / left_square - right * right / right_square;
  const double height = (y - left * left_y / left_square - right * right_y / right_square) / weight;
  const double before = (left_y - height * left) / left_square, behind = (right_y - height * right) / right_square;
  return {{before, height - before * at}, {behind, height - behind * at}};
}

double squares(std::span<const CurvePoint> points, const StraightLine& line) {
  double sum = 0;
  for (const CurvePoint& point : points) sum += std::pow(point.y - line.at(point.x), 2);
  return sum;
}

}  // namespace

std::vector<StraightLine> fit_lines(const std::vector<CurvePoint>& points, std::size_t pieces) {
  const std::span all{points};
  if (pieces < 2 || points.size() < 3) return {fit_line(all)};
  std::vector<StraightLine> best;
  double least = 0;
  const auto offer = [&](std::vector<StraightLine> lines, std::size_t left) {
    const double sum = squares(all.first(left), lines[0]) + squares(all.subspan(left), lines[1]);
    if (!best.empty() && !(sum < least)) return;
    least = sum;
    best = std::move(lines);
  };
  for (std::size_t left = 1; left + 1 < points.size(); ++left) offer(fit_meeting(all, points[left].x), left);
  for (std::size_t left = 2; left + 2 <= points.size(); ++left) {
    const StraightLine before = fit_line(all.first(left)), behind = fit_line(all.subspan(left));
    const double at = (behind.intercept - before.intercept) / (before.slope - behind.slope);
    if (at > points[left - 1].x && at < points[left].x) offer({before, behind}, left);
  }
  return best;
}

}  // namespace tidepool
