// tidepool machines: the known machines, and machine files to start one's own from.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "simulator/engine/machine/machine_file.hpp"
#include "simulator/machine.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

struct MachinesArguments {
  std::string name;
  bool json = false, file = false;
};

nlohmann::ordered_json to_json(const Machine& machine) {
  const auto link = [](const Link& l) {
    nlohmann::ordered_json json{{"rate_bytes_per_second", l.rate.count()},
                                {"latency_ns", l.latency.count()},
                                {"duplex", static_cast<double>(l.duplex_ppm) / 1e6},
                                {"slowdown", static_cast<double>(l.slowdown_ppm) / 1e6}};
    for (const TimedSize& each : l.times)
      json["times"].push_back({{"size_bytes", each.size.count()}, {"time_ns", each.time.count()}});
    return json;
  };
  nlohmann::ordered_json host{{"powers_of_two", machine.host.powers_of_two},
                              {"pin_bytes_per_second", machine.host.pin_rate.count()},
                              {"pin_latency_ns", machine.host.pin_latency.count()}};
  if (machine.host.capacity != HostMemory{}.capacity) host["capacity_bytes"] = machine.host.capacity.count();
  nlohmann::ordered_json json{{"name", machine.name},
                              {"capacity_bytes", machine.capacity.count()},
                              {"h2d", link(machine.h2d)},
                              {"d2h", link(machine.d2h)},
                              {"device_copy_bytes_per_second", machine.device_copy.count()},
                              {"segment_alloc_ns", machine.segment_alloc.count()},
                              {"segment_free_ns", machine.segment_free.count()},
                              {"page_map_ns", machine.page_map.count()},
                              {"page_unmap_ns", machine.page_unmap.count()},
                              {"host", host}};
  if (machine.storage != Storage{})
    json["storage"] = {{"capacity_bytes", machine.storage.capacity.count()},
                       {"read", link(machine.storage.read)},
                       {"write", link(machine.storage.write)}};
  if (machine.sharing != Sharing{}) json["sharing"] = {{"link", machine.sharing.link}, {"host", machine.sharing.host}};
  json.update({{"launch_ns", machine.launch.count()},
               {"submit_ns", machine.submit.count()},
               {"chunk_bytes", machine.chunk.count()},
               {"source", machine.source}});
  return json;
}

void print_row(const Machine& machine) {
  fmt::print("{:<14} {:>10}  {:>8.2f} GB/s + {:<8}  {:>8.2f} GB/s + {:<8}\n", machine.name, to_text(machine.capacity),
             static_cast<double>(machine.h2d.rate.count()) / 1e9, to_text(machine.h2d.latency),
             static_cast<double>(machine.d2h.rate.count()) / 1e9, to_text(machine.d2h.latency));
}

int list_machines(const MachinesArguments& arguments) {
  if (arguments.file && arguments.json) throw InputError{"--json: expected without --file"};
  std::vector<Machine> machines = known_machines();
  if (!arguments.name.empty()) machines = {find_machine(arguments.name)};
  if (arguments.file) {
    for (const Machine& machine : machines) fmt::print("{}", machine_file(machine));
  } else if (arguments.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Machine& machine : machines) all.push_back(to_json(machine));
    fmt::print("{}\n", json_text(all));
  } else {
    fmt::print("{:<14} {:>10}  {:>24}  {:>24}\n", "machine", "memory", "host to device", "device to host");
    for (const Machine& machine : machines) print_row(machine);
    if (!arguments.name.empty()) fmt::print("source: {}\n", machines.front().source);
  }
  return 0;
}

const RegisterCommand kMachines{
    {.name = "machines",
     .summary = "machines with a fixed name, or the content of a machine file",
     .declare = [](const CommandLine& app) {
       const auto arguments = std::make_shared<MachinesArguments>();
       app.add_option("name", arguments->name, "a fixed name or a machine file");
       app.add_flag("--json", arguments->json, "one JSON array");
       app.add_flag("--file", arguments->file, "as a machine file, to change and use").needs("name");
       return std::function<int()>{[arguments] { return list_machines(*arguments); }};
     }}};

}  // namespace
}  // namespace tidepool
