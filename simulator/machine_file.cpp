#include "simulator/machine_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "simulator/options.hpp"
#include "traces/error.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

/// One object of a machine file: hands out its values and refuses keys that it does not know.
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

  std::string text(const std::string& key) const {
    const Json& value = at(key);
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      throw InputError{fmt::format("{}: {}{}; expected a text with its unit, as in \"10us\"", file_, where(key),
                                   value.is_string() ? "empty" : value.dump().substr(0, 40))};
    return value.get<std::string>();
  }

  /// The value of a key as `parse` reads it.
  template <class Parse>
  auto read(const std::string& key, Parse parse) const {
    const std::string value = text(key);
    try {
      return parse(value);
    } catch (const InputError& error) {
      throw InputError{fmt::format("{}: {}{}", file_, where(key), error.what())};
    }
  }

  Link link(const std::string& key) const {
    const Fields fields{at(key), file_, prefix_ + key + ".", {"rate", "latency"}};
    return {fields.read("rate", parse_rate), fields.read("latency", parse_nanos)};
  }

 private:
  /// "h2d.latency: "
  std::string where(const std::string& key) const {
    return (key.empty() ? prefix_.substr(0, prefix_.size() - 1) : prefix_ + key) + ": ";
  }
  const Json& at(const std::string& key) const {
    const auto found = object_.find(key);
    if (found == object_.end())
      throw InputError{fmt::format("{}: key '{}{}' is missing; expected every key that simulator/MACHINES.md lists",
                                   file_, prefix_, key)};
    return *found;
  }

  const Json& object_;
  std::string file_, prefix_;
};

/// The number with the largest unit that divides it, so that it reads back exactly.
std::string exact_text(Bytes size) {
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

}  // namespace

Machine parse_machine(std::string_view text, const std::string& file) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    const std::size_t position = std::min(error.byte, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n');
    throw InputError{fmt::format("{}:{}: this is not JSON; expected a machine file, as simulator/MACHINES.md describes",
                                 file, line)};
  }
  const Fields fields{json,
                      file,
                      "",
                      {"name", "capacity", "h2d", "d2h", "device_copy", "segment_alloc", "segment_free", "page_map",
                       "page_unmap", "source"}};
  return {.name = fields.text("name"),
          .capacity = fields.read("capacity", parse_bytes),
          .h2d = fields.link("h2d"),
          .d2h = fields.link("d2h"),
          .device_copy = fields.read("device_copy", parse_rate),
          .segment_alloc = fields.read("segment_alloc", parse_nanos),
          .segment_free = fields.read("segment_free", parse_nanos),
          .page_map = fields.read("page_map", parse_nanos),
          .page_unmap = fields.read("page_unmap", parse_nanos),
          .source = fields.text("source")};
}

std::string machine_file(const Machine& machine) {
  const auto link = [](const Link& l) {
    return Json{{"rate", exact_text(l.rate)}, {"latency", exact_text(l.latency)}};
  };
  const Json json{{"name", machine.name},
                  {"capacity", exact_text(machine.capacity)},
                  {"h2d", link(machine.h2d)},
                  {"d2h", link(machine.d2h)},
                  {"device_copy", exact_text(machine.device_copy)},
                  {"segment_alloc", exact_text(machine.segment_alloc)},
                  {"segment_free", exact_text(machine.segment_free)},
                  {"page_map", exact_text(machine.page_map)},
                  {"page_unmap", exact_text(machine.page_unmap)},
                  {"source", machine.source}};
  return json.dump(2) + "\n";
}

}  // namespace tidepool
