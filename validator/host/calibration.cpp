#include "validator/host/calibration.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <thread>

#include "validator/host/host_link.hpp"

namespace tidepool {
namespace {

/// Rates in a machine file are whole MB/s.
BytesPerSecond rounded_rate(double rate) {
  return BytesPerSecond{std::max<std::int64_t>(1, std::llround(rate / 1e6)) * 1'000'000};
}

void measure_direction(const LinkProbe& probe, const CalibrationOptions& options, bool out, Calibration& calibration) {
  Link& link = out ? calibration.machine.d2h : calibration.machine.h2d;
  const std::string name = out ? "d2h" : "h2d";
  const auto time_of = [&](Bytes size) {
    std::vector<double> times;
    probe.copy(out, size);  // the first copy takes longer
    for (int i = 0; i < options.samples; ++i) times.push_back(static_cast<double>(probe.copy(out, size).count()));
    const Figure figure = add_figure(calibration, fmt::format("{} {}", name, to_text(size)), "ns", std::move(times));
    return probe.shared ? figure.least : figure.median;
  };
  link.latency = Nanos{std::llround(time_of(Bytes{1}))};
  link.times.clear();
  for (Bytes size = 4_KiB; size <= options.largest; size = size * 4) {
    const Nanos last = link.times.empty() ? link.latency : link.times.back().time;
    link.times.push_back({size, std::max(Nanos{std::llround(time_of(size))}, last + Nanos{1})});
  }
  const TimedSize most = link.times.back(), before = link.times[link.times.size() - 2];
  link.rate = rounded_rate(static_cast<double>((most.size - before.size).count()) * 1e9 /
                           static_cast<double>((most.time - before.time).count()));
}

/// Measures the part of the rate that is left while data moves the other way. The direction that ends first was
/// disturbed all the time. For the other direction, only the data that it moved until then counts.
void measure_duplex(const LinkProbe& probe, const CalibrationOptions& options, Calibration& calibration) {
  constexpr int kCount = 4;
  Link &out = calibration.machine.d2h, &in = calibration.machine.h2d;
  const Bytes size = options.largest / 4;
  const double alone_out = static_cast<double>(out.time(size).count()) * kCount;
  const double alone_in = static_cast<double>(in.time(size).count()) * kCount;
  std::vector<double> shares_out, shares_in;
  for (int i = 0; i < options.samples; ++i) {
    const auto [took_out, took_in] = probe.both(size, kCount);
    const double first = static_cast<double>(std::min(took_out, took_in).count());
    const auto share = [&](double alone, Nanos took) {
      const double left = std::max(0.0, static_cast<double>(took.count()) - first);  // the rest, alone at the full rate
      return std::clamp((alone - left) / first, 0.01, 1.0) * 100;
    };
    shares_out.push_back(share(alone_out, took_out));
    shares_in.push_back(share(alone_in, took_in));
  }
  out.duplex_ppm = std::llround(add_figure(calibration, "d2h duplex", "%", std::move(shares_out)).median * 1e4);
  in.duplex_ppm = std::llround(add_figure(calibration, "h2d duplex", "%", std::move(shares_in)).median * 1e4);
}

/// The processor's name, or "an unknown processor" if the system does not report it.
std::string processor() {
  std::ifstream file{"/proc/cpuinfo"};
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  return "an unknown processor";
}

}  // namespace

Figure add_figure(Calibration& calibration, std::string name, std::string unit, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const Figure figure{std::move(name), std::move(unit), values[values.size() / 2],
                      values.front(),  values.back(),   static_cast<int>(values.size())};
  calibration.figures.push_back(figure);
  return figure;
}

std::string measured_now(const std::string& what) {
  return fmt::format("measured {:%Y-%m-%d} on {} by tidepool " TIDEPOOL_VERSION, fmt::gmtime(std::time(nullptr)), what);
}

void measure_links(const LinkProbe& probe, const CalibrationOptions& options, Calibration& calibration) {
  for (const bool out : {true, false}) measure_direction(probe, options, out, calibration);
  measure_duplex(probe, options, calibration);
}

Calibration calibrate_host(const CalibrationOptions& options) {
  HostLinks links;
  LinkProbe probe;
  probe.shared = true;
  probe.copy = [&](bool is_out, Bytes size) {
    const auto start = Clock::now();
    (is_out ? links.out : links.in).copy(size);
    return since(start);
  };
  probe.both = [&](Bytes size, int count) {
    const auto copies = [&links, size, count](bool is_out, Nanos& took) {
      HostLinks::take_core(is_out);
      const auto start = Clock::now();
      for (int i = 0; i < count; ++i) (is_out ? links.out : links.in).copy(size);
      took = since(start);
    };
    Nanos took_out, took_in;
    std::thread out{[&] { copies(true, took_out); }}, in{[&] { copies(false, took_in); }};
    out.join(), in.join();
    return std::pair{took_out, took_in};
  };
  Calibration calibration;
  Machine& machine = calibration.machine;
  machine.name = "this-host";
  machine.capacity = 1_GiB;
  measure_links(probe, options, calibration);
  machine.device_copy = machine.d2h.rate;
  machine.source =
      measured_now(processor()) + ": copies within its memory, for validate --backend host --move; capacity assumed";
  return calibration;
}

}  // namespace tidepool
