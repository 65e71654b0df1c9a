#include "simulator/engine/machine/machine_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/options.hpp"
#include "simulator/run_spec.hpp"
#include "traces/base/error.hpp"
#include "traces/base/lines.hpp"
#include "traces/content.hpp"

namespace tidepool {

namespace {

using Json = nlohmann::ordered_json;

/// The number with the largest unit that divides it, so that it reads back exactly.
std::string exact_text(Bytes size) {
  if (size == Bytes{}) return "0B";
  constexpr std::array<std::pair<std::int64_t, const char*>, 7> kUnits{{{1 << 30, "GiB"},
                                                                        {1'000'000'000, "GB"},
                                                                        {1 << 20, "MiB"},
                                                                        {1'000'000, "MB"},
                                                                        {1 << 10, "KiB"},
                                                                        {1'000, "kB"},
                                                                        {1, "B"}}};
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                 [&](const auto& candidate) { return size.count() % candidate.first == 0; });
  return fmt::format("{}{}", size.count() / unit->first, unit->second);
}
std::string exact_text(BytesPerSecond rate) {
  if (rate.count() % 1'000'000 == 0) return fmt::format("{}GB/s", static_cast<double>(rate.count()) / 1e9);
  return fmt::format("{}.{:03}kB/s", rate.count() / 1'000, rate.count() % 1'000);
}
std::string exact_text(Nanos time) {
  return time.count() % 1'000 == 0 ? fmt::format("{}us", time.count() / 1'000) : fmt::format("{}ns", time.count());
}
std::string exact_share(std::int64_t ppm) { return fmt::format("{}%", static_cast<double>(ppm) / 10'000); }

/// Reads "71%" or "70.5%". @return  millionths; none if the text is no percentage
std::optional<double> parse_percent(std::string_view text) {
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (error != std::errc{} || std::string_view{end, text.data() + text.size()} != "%") return std::nullopt;
  return std::round(percent * 10'000);
}

std::int64_t parse_duplex(std::string_view text) {
  const std::optional<double> ppm = parse_percent(text);
  if (!ppm || !(*ppm >= 1) || *ppm > 1e6)
    throw InputError{
        fmt::format("'{}' is not a share; expected a number above 0 and up to 100 and %, as in 71%", text)};
  return static_cast<std::int64_t>(*ppm);
}

std::int64_t parse_slowdown(std::string_view text) {
  const std::optional<double> ppm = parse_percent(text);
  if (!ppm || !(*ppm >= 0) || *ppm > 1e7)
    throw InputError{fmt::format("'{}' is not a slow-down; expected a number from 0 to 1000 and %, as in 2%", text)};
  return static_cast<std::int64_t>(*ppm);
}

bool parse_rounding(std::string_view text) {
  if (text != "none" && text != "power of two")
    throw InputError{fmt::format("'{}' is no rounding; expected none or power of two", text)};
  return text != "none";
}

Bytes parse_chunk(std::string_view text) {
  const Bytes size = parse_bytes(text);
  if (size == Bytes{}) throw InputError{fmt::format("'{}' is no size for a piece; expected at least 1B", text)};
  return size;
}

/// Reads a time, with a limit that keeps sums of millions of them in 64 bits.
Nanos parse_time(std::string_view text) {
  constexpr Nanos kMost = 3'600'000_ms;
  const Nanos time = parse_nanos(text);
  if (time > kMost) throw InputError{fmt::format("'{}' is too long; expected at most 3600s", text)};
  return time;
}

std::int64_t parse_devices(std::string_view text) {
  constexpr std::int64_t kMost = 1024;
  const std::optional<std::int64_t> count = parse_whole(std::string{text});
  if (!count || *count < 1 || *count > kMost)
    throw InputError{fmt::format("'{}' is no number of devices; expected a whole number from 1 to {}", text, kMost)};
  return *count;
}

/// One object of a machine file: reads its values and refuses unknown keys.
class Fields {
 public:
  Fields(const Json& object, std::string file, std::string prefix, const std::vector<std::string>& known)
      : object_{object}, file_{std::move(file)}, prefix_{std::move(prefix)} {
    if (!object_.is_object())
      throw InputError{fmt::format("{}: {}; expected an object with {}", file_,
                                   prefix_.empty() ? "not an object" : where("") + "not an object",
                                   fmt::join(known, ", "))};
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string near = nearest(key, known);
      throw InputError{fmt::format("{}: unknown key '{}{}'{}; known: {}", file_, prefix_, key,
                                   near.empty() ? "" : fmt::format(", did you mean '{}'?", near),
                                   fmt::join(known, ", "))};
    }
  }

  std::string text(const std::string& key, const char* expected = "a text with its unit, as in \"10us\"") const {
    const Json& value = at(key);
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      throw InputError{fmt::format("{}: {}{}; expected {}", file_, where(key),
                                   value.is_string() ? "empty" : value.dump().substr(0, 40), expected)};
    return value.get<std::string>();
  }

  /// The value of a key as `parse` reads it.
  template <class Parse, class... Expected>
  auto read(const std::string& key, Parse parse, Expected... expected) const {
    const std::string value = text(key, expected...);
    try {
      return parse(value);
    } catch (const InputError& error) {
      throw InputError{fmt::format("{}: {}{}", file_, where(key), error.what())};
    }
  }

  bool has(const std::string& key) const { return object_.contains(key); }

  Link link(const std::string& key) const {
    const Fields fields{at(key), file_, prefix_ + key + ".", {"rate", "latency", "times", "duplex", "slowdown"}};
    Link link = fields.alone();
    if (fields.has("duplex")) link.duplex_ppm = fields.read("duplex", parse_duplex);
    if (fields.has("slowdown")) link.slowdown_ppm = fields.read("slowdown", parse_slowdown);
    return link;
  }

  /// A link without the keys `duplex` and `slowdown`.
  Link alone() const {
    Link link{read("rate", parse_rate), read("latency", parse_time)};
    if (has("times")) link.times = times("times", link.latency);
    return link;
  }

  Storage storage(const std::string& key) const {
    const Fields fields{at(key), file_, prefix_ + key + ".", {"capacity", "read", "write"}};
    const auto link = [&](const std::string& way) {
      return Fields{fields.at(way), file_, prefix_ + key + "." + way + ".", {"rate", "latency", "times"}}.alone();
    };
    return {.write = link("write"), .read = link("read"), .capacity = fields.read("capacity", parse_bytes)};
  }

  HostMemory host(const std::string& key) const {
    const Fields fields{at(key), file_, prefix_ + key + ".", {"capacity", "rounding", "pin"}};
    HostMemory host;
    if (fields.has("capacity")) host.capacity = fields.read("capacity", parse_bytes);
    if (fields.has("rounding")) host.powers_of_two = fields.read("rounding", parse_rounding);
    if (fields.has("pin")) {
      const Fields pin{fields.at("pin"), file_, prefix_ + key + ".pin.", {"rate", "latency"}};
      host.pin_rate = pin.read("rate", parse_rate);
      host.pin_latency = pin.read("latency", parse_time);
    }
    return host;
  }

  Sharing sharing(const std::string& key) const {
    const Fields fields{at(key), file_, prefix_ + key + ".", {"link", "host"}};
    Sharing sharing;
    constexpr const char* kExpected = "a whole number as text, as in \"2\"";
    if (fields.has("link")) sharing.link = fields.read("link", parse_devices, kExpected);
    if (fields.has("host")) sharing.host = fields.read("host", parse_devices, kExpected);
    return sharing;
  }

  /// {"64KiB": "14us", ...}, by growing size.
  std::vector<TimedSize> times(const std::string& key, Nanos latency) const {
    const Json& object = at(key);
    const auto refuse = [&](const std::string& what) {
      throw InputError{fmt::format("{}: {}{}; expected times of sizes that both grow, as in {{\"64KiB\": \"14us\"}}",
                                   file_, where(key), what)};
    };
    if (!object.is_object() || object.empty()) refuse(object.dump().substr(0, 40));
    std::vector<TimedSize> times;
    TimedSize last{Bytes{}, latency};
    for (const auto& [size, time] : object.items()) {
      const std::string at_size = where(key + "." + size);
      try {
        times.push_back({parse_bytes(size), parse_time(time.is_string() ? time.get<std::string>() : time.dump())});
      } catch (const InputError& error) {
        throw InputError{fmt::format("{}: {}{}", file_, at_size, error.what())};
      }
      if (times.back().size <= last.size || times.back().time <= last.time)
        refuse(fmt::format("{} takes {} and {} takes {}", exact_text(last.size), exact_text(last.time),
                           exact_text(times.back().size), exact_text(times.back().time)));
      last = times.back();
    }
    return times;
  }

 private:
  /// "h2d.latency: "
  std::string where(const std::string& key) const {
    return (key.empty() ? prefix_.substr(0, prefix_.size() - 1) : prefix_ + key) + ": ";
  }
  const Json& at(const std::string& key) const {
    const auto found = object_.find(key);
    if (found == object_.end())
      throw InputError{
          fmt::format("{}: key '{}{}' is missing; expected every key that simulator/engine/machine/MACHINES.md does "
                      "not call optional",
                      file_, prefix_, key)};
    return *found;
  }

  const Json& object_;
  std::string file_, prefix_;
};

}  // namespace

Machine parse_machine(std::string_view text, const std::string& file) {
  if (const std::string_view what = not_text(text); !what.empty())
    throw InputError{
        fmt::format("{}: {}; expected a machine file, as simulator/engine/machine/MACHINES.md describes", file, what)};
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    const std::size_t position = std::min(error.byte, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n');
    throw InputError{fmt::format(
        "{}:{}: this is not JSON; expected a machine file, as simulator/engine/machine/MACHINES.md describes", file,
        line)};
  }
  const Fields fields{json,
                      file,
                      "",
                      {"name", "capacity", "h2d", "d2h", "device_copy", "segment_alloc", "segment_free", "page_map",
                       "page_unmap", "host", "storage", "sharing", "launch", "submit", "chunk", "source"}};
  Machine machine{.name = fields.text("name"),
                  .capacity = fields.read("capacity", parse_bytes),
                  .h2d = fields.link("h2d"),
                  .d2h = fields.link("d2h"),
                  .device_copy = fields.read("device_copy", parse_rate),
                  .segment_alloc = fields.read("segment_alloc", parse_time),
                  .segment_free = fields.read("segment_free", parse_time),
                  .page_map = fields.read("page_map", parse_time),
                  .page_unmap = fields.read("page_unmap", parse_time),
                  .source = fields.text("source")};
  if (fields.has("host")) machine.host = fields.host("host");
  if (fields.has("storage")) machine.storage = fields.storage("storage");
  if (fields.has("sharing")) machine.sharing = fields.sharing("sharing");
  if (fields.has("launch")) machine.launch = fields.read("launch", parse_time);
  if (fields.has("submit")) machine.submit = fields.read("submit", parse_time);
  if (fields.has("chunk")) machine.chunk = fields.read("chunk", parse_chunk);
  return machine;
}

std::string machine_file(const Machine& machine) {
  const auto link = [](const Link& l) {
    Json json{{"rate", exact_text(l.rate)}, {"latency", exact_text(l.latency)}};
    for (const TimedSize& each : l.times) json["times"][exact_text(each.size)] = exact_text(each.time);
    if (l.duplex_ppm != Link{}.duplex_ppm) json["duplex"] = exact_share(l.duplex_ppm);
    if (l.slowdown_ppm != 0) json["slowdown"] = exact_share(l.slowdown_ppm);
    return json;
  };
  Json json{{"name", machine.name},
            {"capacity", exact_text(machine.capacity)},
            {"h2d", link(machine.h2d)},
            {"d2h", link(machine.d2h)},
            {"device_copy", exact_text(machine.device_copy)},
            {"segment_alloc", exact_text(machine.segment_alloc)},
            {"segment_free", exact_text(machine.segment_free)},
            {"page_map", exact_text(machine.page_map)},
            {"page_unmap", exact_text(machine.page_unmap)}};
  const HostMemory& host = machine.host;
  if (host.capacity != HostMemory{}.capacity) json["host"]["capacity"] = exact_text(host.capacity);
  if (host.powers_of_two) json["host"]["rounding"] = "power of two";
  if (host.pin_rate != BytesPerSecond{})
    json["host"]["pin"] = {{"rate", exact_text(host.pin_rate)}, {"latency", exact_text(host.pin_latency)}};
  if (machine.storage != Storage{})
    json["storage"] = {{"capacity", exact_text(machine.storage.capacity)},
                       {"read", link(machine.storage.read)},
                       {"write", link(machine.storage.write)}};
  if (machine.sharing.link != 1) json["sharing"]["link"] = fmt::format("{}", machine.sharing.link);
  if (machine.sharing.host != 1) json["sharing"]["host"] = fmt::format("{}", machine.sharing.host);
  if (machine.launch != Nanos{}) json["launch"] = exact_text(machine.launch);
  if (machine.submit != Nanos{}) json["submit"] = exact_text(machine.submit);
  if (machine.chunk != Bytes{}) json["chunk"] = exact_text(machine.chunk);
  json["source"] = machine.source;
  return json.dump(2) + "\n";
}

std::optional<double> parse_share(std::string_view text) {
  if (!text.ends_with('x') && !text.ends_with('%')) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size() - 1, number);
  const double share = text.ends_with('%') ? number / 100 : number;
  if (error == std::errc{} && end == text.data() + text.size() - 1 && share > 0 && share < 1e6) return share;
  throw InputError{fmt::format(
      "'{}' is not a share of the peak; expected a number and x or %, above 0x and below 1000000x, as in 0.5x", text)};
}

Bytes parse_capacity(std::string_view text, Bytes ideal_peak) {
  if (text == "none") return kNoLimit;
  if (const std::optional<double> share = parse_share(text)) {
    const Bytes capacity{static_cast<std::int64_t>(static_cast<double>(ideal_peak.count()) * *share)};
    if (capacity == Bytes{} && ideal_peak > Bytes{})
      throw InputError{
          fmt::format("'{}' is less than one byte of the peak of {}; expected more", text, to_text(ideal_peak))};
    return capacity;
  }
  try {
    return parse_bytes(text);
  } catch (const InputError& error) {
    throw InputError{fmt::format("{}; or a share of the peak, as in 0.5x; or none", error.what())};
  }
}

}  // namespace tidepool
