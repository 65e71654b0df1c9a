#include "simulator/studies/sweep/sweep_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "simulator/studies/sweep/result_row.hpp"
#include "traces/base/error.hpp"
#include "traces/base/input.hpp"
#include "traces/base/refuse.hpp"
#include "traces/base/text.hpp"
#include "traces/import/importer.hpp"
#include "traces/summary.hpp"

namespace tidepool {
namespace {

using Json = nlohmann::ordered_json;

/// What a sweep is over beside its traces, with a hash of the content.
struct Content {
  std::string name;  ///< "machine mine: numbers", "places.jsonl: content"
  std::string hash;
};

/// Fills `hashes` if they are not known yet; otherwise refuses contents that have others.
void require_same(std::span<const Content> contents, std::vector<std::string>& hashes, bool known) {
  if (!known) {
    hashes.clear();
    for (const Content& content : contents) hashes.push_back(content.hash);
    return;
  }
  if (hashes.size() != contents.size())
    refuse("not a sweep's request: {} hashes for {} machines or files", hashes.size(), contents.size());
  for (std::size_t i = 0; i < contents.size(); ++i)
    if (hashes[i] != contents[i].hash)
      refuse("{} {}; the sweep was over {}", contents[i].name, contents[i].hash, hashes[i]);
}

std::vector<Content> machines_of(const Grid& grid) {
  std::vector<Content> all;
  for (const Machine& machine : grid.machines())
    all.push_back({fmt::format("machine {}: numbers", machine.name), machine_hash(machine)});
  return all;
}

std::vector<Content> files_of(const Grid& grid) {
  std::vector<Content> all;
  for (const std::string& file : grid.files())
    all.push_back({fmt::format("{}: content", file), content_key(read_input(file).bytes())});
  return all;
}

}  // namespace

std::string to_json(const SweepOrder& order) {
  Json grid = Json::object(), traces = Json::array();
  for_each_text(order.grid, [&](const char* name, const std::string& text) { grid[name] = text; });
  grid["first"] = order.grid.first;
  grid["count_search"] = order.grid.count_search;
  for (std::size_t i = 0; i < order.traces.size(); ++i)
    traces.push_back({{"path", order.traces[i]}, {"hash", order.hashes.at(i)}});
  Json json{{"folder", order.folder}, {"traces", traces}, {"machines", order.machines},
            {"files", order.files},   {"grid", grid},     {"shard", to_text(order.shard)}};
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
    json.at("files").get_to(order.files);
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
    if (const std::string caveat = caveat_of_times(trace.trace); !caveat.empty()) say("{}: {}\n", path, caveat);
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
    require_same(machines_of(grid), order.machines, known);
    require_same(files_of(grid), order.files, known);
    parts.push_back({std::move(trace), std::move(grid)});
  }
  return parts;
}

}  // namespace tidepool
