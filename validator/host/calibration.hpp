// Measurement of the numbers of a machine file, with the least and largest measurement of each.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/machine.hpp"

namespace tidepool {

/// A number with its measurements. `unit` is "ns", "bytes/s", "flop/s" or "%".
struct Figure {
  std::string name, unit;
  double median = 0, least = 0, most = 0;
  int samples = 0;
};

struct Calibration {
  Machine machine;  ///< its source says when and on what device it was measured, and which numbers are assumed
  std::vector<Figure> figures;
};

struct CalibrationOptions {
  Bytes largest = 256_MiB;  ///< of the copies
  int samples = 15;         ///< of each number
};

/// The operations that a backend offers for measuring its link.
struct LinkProbe {
  /// Whether other programs disturb the copies. If so, the least of several measurements counts, else the median.
  bool shared = false;
  std::function<Nanos(bool out, Bytes size)> copy;  ///< time of one copy that has the link to itself
  /// `count` copies of `size` each way at once: the time of each direction, out and in.
  std::function<std::pair<Nanos, Nanos>(Bytes size, int count)> both;
};

/// Measures times of copies by size, and latency, rate and duplex coupling of both directions, into machine and
/// figures.
void measure_links(const LinkProbe& probe, const CalibrationOptions& options, Calibration& calibration);

/// @param values  not empty
/// @return  the figure that was added to the calibration
Figure add_figure(Calibration& calibration, std::string name, std::string unit, std::vector<double> values);

/// Measures this machine's memory as the host backend uses it: HostLink copies on two lanes. Ops only wait there, so
/// copies do not slow them; allocations take no time.
Calibration calibrate_host(const CalibrationOptions& options);

/// "measured 2026-11-22 on WHAT by tidepool 0.1.0"
std::string measured_now(const std::string& what);

}  // namespace tidepool
