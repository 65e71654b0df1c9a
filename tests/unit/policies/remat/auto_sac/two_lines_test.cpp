// A curve fitted by two straight lines that meet.
#include "policies/remat/auto_sac/two_lines.hpp"

#include "tests/catch.hpp"
#include "tests/random_trace.hpp"

namespace tidepool::two_lines_test {

namespace {

double value(const std::vector<StraightLine>& lines, double x) {
  if (lines.size() == 1) return lines[0].at(x);
  const double meet = (lines[1].intercept - lines[0].intercept) / (lines[0].slope - lines[1].slope);
  return lines[x < meet ? 0 : 1].at(x);
}

double squares(const std::vector<CurvePoint>& points, double meet, double at_meet, double left, double right) {
  double sum = 0;
  for (const CurvePoint& point : points) {
    const double y = at_meet + (point.x - meet) * (point.x < meet ? left : right);
    sum += (y - point.y) * (y - point.y);
  }
  return sum;
}

}  // namespace

TEST_CASE("a bent line is found exactly, whether it bends at a point or between two") {
  for (const double bend : {3.0, 3.4}) {
    std::vector<CurvePoint> points;
    for (const double x : {0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0})
      points.push_back({x, x < bend ? x : bend + 5 * (x - bend)});
    const std::vector<StraightLine> lines = fit_lines(points, 2);
    REQUIRE(lines.size() == 2);
    CHECK(lines[0].slope == Approx(1));
    CHECK(lines[1].slope == Approx(5));
    for (const CurvePoint& point : points) CHECK(value(lines, point.x) == Approx(point.y).margin(1e-9));
  }
}

TEST_CASE("a single line is the least-squares line, and for one point it is level") {
  const std::vector<StraightLine> line =
      fit_lines({{0, 0}, {1, 2}, {2, 1}}, 1);  // the means are 1 and 1; the slope is (1 + 0 + 0) / 2
  REQUIRE(line.size() == 1);
  CHECK(line[0].slope == Approx(0.5));
  CHECK(line[0].intercept == Approx(0.5));
  CHECK(fit_lines({{3, 7}}, 1)[0].at(100) == Approx(7));
}

TEST_CASE("no other two lines that meet fit a random curve better") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    tests::Random random{seed};
    std::vector<CurvePoint> points;
    for (int i = 0; i < 7; ++i) points.push_back({i * 0.1, static_cast<double>(random.below(100)) / 100});
    const std::vector<StraightLine> lines = fit_lines(points, 2);
    double found = 0;
    for (const CurvePoint& point : points) found += std::pow(value(lines, point.x) - point.y, 2);
    INFO("seed " << seed);
    for (int trial = 0; trial < 2'000; ++trial) {
      const auto number = [&] { return static_cast<double>(random.below(2'000)) / 500 - 2; };
      const double meet = 0.05 + static_cast<double>(random.below(500)) / 1'000;
      CHECK(squares(points, meet, number(), number(), number()) >= found - 1e-9);
    }
  }
}

}  // namespace tidepool::two_lines_test
