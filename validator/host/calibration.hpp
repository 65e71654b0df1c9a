// Measuring what a machine file needs, with the spread of each number.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/machine/machine.hpp"

namespace tidepool {

/// A number that was measured several times. `unit` is "ns", "bytes/s", "flop/s" or "%".
struct Figure {
  std::string name, unit;
  double median = 0, least = 0, most = 0;
  int samples = 0;
};

struct Calibration {
  Machine machine;  ///< its source says what was measured, when, on what, and what was not
  std::vector<Figure> figures;
};

struct CalibrationOptions {
  Bytes largest = 256_MiB;  ///< of the copies
  int samples = 15;         ///< of each number
};

/// What both backends can do with a link.
struct LinkProbe {
  /// Other programs take turns with the copies, so the least of several times is that of the link; else the median is.
  bool shared = false;
  std::function<Nanos(bool out, Bytes size)> copy;  ///< one copy that has the link to itself
  /// `count` copies of `size` each way at once: time that each way took, out and in.
  std::function<std::pair<Nanos, Nanos>(Bytes size, int count)> both;
};

/// Times of copies by size, latency, rate and duplex coupling of both directions, into the machine and the figures.
void measure_links(const LinkProbe& probe, const CalibrationOptions& options, Calibration& calibration);

/// @param values  not empty
/// @return  what has been added to the figures of a calibration
Figure add_figure(Calibration& calibration, std::string name, std::string unit, std::vector<double> values);

/// This machine's memory as the host backend uses it: HostLink copies on two lanes. Kernels only take time there, so
/// nothing slows them; asking for memory costs nothing.
Calibration calibrate_host(const CalibrationOptions& options);

/// "measured 2026-11-22 on WHAT by tidepool 0.1.0"
std::string measured_now(const std::string& what);

}  // namespace tidepool
