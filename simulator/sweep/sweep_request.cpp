#include "simulator/sweep/sweep_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "traces/error.hpp"
#include "traces/import/importer.hpp"
#include "traces/json_text.hpp"
#include "traces/refuse.hpp"
#include "traces/say.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

/// Fills `hashes` if they are empty; otherwise refuses machines that have others.
void require_machines(std::span<const Machine> machines, std::vector<std::string>& hashes) {
  const bool known = !hashes.empty();
  if (known && hashes.size() != machines.size())
    refuse("not a sweep's request: {} hashes for {} machines", hashes.size(), machines.size());
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const std::string hash = machine_hash(machines[i]);
    if (!known)
      hashes.push_back(hash);
    else if (hashes.at(i) != hash)
      refuse("machine {}: numbers {}; the sweep was over {}", machines[i].name, hash, hashes[i]);
  }
}

}  // namespace

std::string to_json(const SweepOrder& order) {
  Json grid = Json::object(), traces = Json::array();
  for_each_text(order.grid, [&](const char* name, const std::string& text) { grid[name] = text; });
  grid["first"] = order.grid.first;
  grid["count_search"] = order.grid.count_search;
  for (std::size_t i = 0; i < order.traces.size(); ++i)
    traces.push_back({{"path", order.traces[i]}, {"hash", order.hashes.at(i)}});
  Json json{{"folder", order.folder},
            {"traces", traces},
            {"machines", order.machines},
            {"grid", grid},
            {"shard", to_text(order.shard)}};
  if (!order.find.empty()) json["find"] = order.find;
  return json_text(json);
}

SweepOrder parse_order(const std::string& text) {
  SweepOrder order;
  try {
    const Json json = Json::parse(text);
    order.folder = json.at("folder");
    for (const Json& trace : json.at("traces")) {
      order.traces.push_back(trace.at("path"));
      order.hashes.push_back(trace.at("hash"));
    }
    json.at("machines").get_to(order.machines);
    for_each_text(order.grid, [&](const char* name, std::string& value) { value = json.at("grid").at(name); });
    order.grid.first = json.at("grid").at("first");
    order.grid.count_search = json.at("grid").at("count_search");
    order.shard = parse_shard(json.at("shard").get<std::string>());
    order.find = json.value("find", "");
  } catch (const Json::exception& error) {
    throw InputError{fmt::format("not a sweep's request: {}", error.what())};
  }
  return order;
}

std::vector<SweepOrder> joined(std::vector<SweepOrder> orders) {
  std::map<std::string, std::vector<SweepOrder>> sweeps;  // by the text of the whole sweep and the number of shards
  for (SweepOrder& order : orders) {
    SweepOrder whole = order;
    whole.shard = {};
    sweeps[fmt::format("{} {}", order.shard.count, to_json(whole))].push_back(std::move(order));
  }
  std::vector<SweepOrder> all;
  for (auto& [text, shards] : sweeps) {
    if (shards.size() == static_cast<std::size_t>(shards[0].shard.count)) {
      shards.resize(1);
      shards[0].shard = {};
    }
    std::move(shards.begin(), shards.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<SweepPart> load_parts(SweepOrder& order) {
  std::vector<SweepPart> parts;
  const bool known = !order.hashes.empty();
  for (std::size_t i = 0; i < order.traces.size(); ++i) {
    const std::string& path = order.traces[i];
    NamedTrace trace{path, load_for_runs(path)};
    if (has_cpu_times(trace.trace)) say("{}: {}\n", path, kCpuTimes);
    const std::string hash = trace.trace.hash();
    if (!known)
      order.hashes.push_back(hash);
    else if (order.hashes[i] != hash)
      throw InputError{fmt::format("{}: content {}; the sweep was over {}", path, hash, order.hashes[i])};
    const auto same = std::find_if(parts.begin(), parts.end(),
                                   [&](const SweepPart& other) { return other.trace.trace.hash() == hash; });
    if (same != parts.end()) {
      say("{}: the same step as {}; left out\n", path, same->trace.name);
      continue;
    }
    Grid grid{order.grid, trace.trace};
    require_machines(grid.machines(), order.machines);
    parts.push_back({std::move(trace), std::move(grid)});
  }
  return parts;
}

}  // namespace tidepool
