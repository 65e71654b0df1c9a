// tidepool policies: every registered pool and policy, plug-ins included.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "simulator/registry.hpp"
#include "traces/base/command_line.hpp"
#include "traces/base/error.hpp"
#include "traces/base/text.hpp"

namespace tidepool {
namespace {

struct PoliciesArguments {
  std::string name;
  bool json = false;
};

/// A listed pool or policy.
struct Entry {
  std::string name, kind, summary, paper;
  std::vector<OptionInfo> options;
};

std::string to_text(PolicyKind kind) {
  switch (kind) {
    case PolicyKind::kNone:
      return "none";
    case PolicyKind::kPool:
      return "pool";
    case PolicyKind::kSwap:
      return "swap";
    case PolicyKind::kRemat:
      return "remat";
    case PolicyKind::kHybrid:
      return "hybrid";
    case PolicyKind::kOrder:
      return "order";
  }
  return "unknown";
}

std::vector<Entry> entries() {
  std::vector<Entry> all;
  for (const PoolInfo* info : all_pools())
    all.push_back({info->name, to_text(PolicyKind::kPool), info->summary, info->paper, info->options});
  for (const PolicyInfo* info : all_policies())
    all.push_back({info->name, to_text(info->kind), info->summary, info->paper, info->options});
  return all;
}

/// The pools and policies of this name, at most one of each. @throws InputError  if there is none
std::vector<Entry> find(const std::string& name) {
  std::vector<Entry> found;
  std::vector<std::string> known;
  for (const Entry& entry : entries()) {
    known.push_back(entry.name);
    if (entry.name == name) found.push_back(entry);
  }
  if (found.empty()) throw InputError{unknown_name("pool or policy", name, known)};
  return found;
}

nlohmann::ordered_json to_json(const Entry& entry) {
  nlohmann::ordered_json options = nlohmann::ordered_json::array();
  for (const OptionInfo& option : entry.options)
    options.push_back(
        {{"name", option.name}, {"default", option.default_value}, {"unit", option.unit}, {"meaning", option.meaning}});
  return {{"name", entry.name},
          {"kind", entry.kind},
          {"summary", entry.summary},
          {"paper", entry.paper},
          {"options", options}};
}

void print_all_of(const Entry& entry) {
  fmt::print("{} ({})\n  {}\n  from: {}\n", entry.name, entry.kind, entry.summary, entry.paper);
  for (const OptionInfo& option : entry.options)
    fmt::print("  {}={}  ({})  {}\n", option.name, option.default_value, option.unit, option.meaning);
}

int list_policies(const PoliciesArguments& arguments) {
  const std::vector<Entry> shown = arguments.name.empty() ? entries() : find(arguments.name);
  if (arguments.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Entry& entry : shown) all.push_back(to_json(entry));
    fmt::print("{}\n", json_text(all));
  } else if (arguments.name.empty()) {
    for (const Entry& entry : shown) fmt::print("{:<7} {:<16} {}\n", entry.kind, entry.name, entry.summary);
  } else {
    for (const Entry& entry : shown) print_all_of(entry);
  }
  return 0;
}

const RegisterCommand kPolicies{{.name = "policies",
                                 .summary = "pools and policies: summary, paper, options",
                                 .declare = [](const CommandLine& app) {
                                   const auto arguments = std::make_shared<PoliciesArguments>();
                                   app.add_option("name", arguments->name, "show one with its options");
                                   app.add_flag("--json", arguments->json, "one JSON array");
                                   return std::function<int()>{[arguments] { return list_policies(*arguments); }};
                                 }}};

}  // namespace
}  // namespace tidepool
