// Job files: one JSON object beside the trace files that it names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "traces/base/error.hpp"
#include "traces/base/lines.hpp"
#include "traces/base/refuse.hpp"
#include "traces/content.hpp"
#include "traces/import/importer.hpp"
#include "traces/job/job.hpp"
#include "traces/job/job_fields.hpp"

namespace tidepool {
namespace {

constexpr std::string_view kVersionKey = "tidepool_job";
constexpr std::int64_t kVersion = 1;
/// The most ops on a rank. No job has as many, but a damaged file may name them.
constexpr std::size_t kMostOps = std::size_t{1} << 31;
/// The deepest nesting. The outermost object is at level 0, lists of ops are at level 3; very deep nesting would
/// exhaust the stack.
constexpr int kDeepest = 16;

JobFields::Json parse_json(const Input& input) {
  using Event = JobFields::Json::parse_event_t;
  std::vector<std::set<std::string>> keys;  // of the objects around this place
  const auto check = [&](int depth, Event event, const JobFields::Json& value) {
    if (depth > kDeepest) refuse("{}: lists or objects {} deep; expected a job file", input.path(), depth);
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(value.get<std::string>()).second)
      refuse("{}: an object has key '{}' twice; expected each key once", input.path(),
             excerpt(value.get<std::string>()));
    return true;
  };
  try {
    return JobFields::Json::parse(input.bytes(), check);
  } catch (const JobFields::Json::parse_error& error) {
    refuse("{}:byte {}: this is no JSON; expected a job file", input.path(), error.byte);
  } catch (const JobFields::Json::out_of_range&) {
    refuse("{}: a number beyond those of 64 bits; expected whole numbers", input.path());
  }
}

std::vector<JobGroup> read_groups(const JobFields& file, std::size_t ranks) {
  std::vector<JobGroup> groups;
  for (const JobFields& fields : file.objects("groups", {"name", "ranks"})) {
    JobGroup group{fields.text("name"), fields.indices("ranks", ranks)};
    const auto descends = [](std::size_t a, std::size_t b) { return a >= b; };
    if (group.ranks.empty()) fields.refuse("ranks", "[]; expected at least one rank");
    if (std::adjacent_find(group.ranks.begin(), group.ranks.end(), descends) != group.ranks.end())
      fields.refuse("ranks",
                    fmt::format("[{}]; expected each rank once, in ascending order", fmt::join(group.ranks, ", ")));
    for (const JobGroup& known : groups)
      if (known.name == group.name) fields.refuse("name", fmt::format("'{}'; expected each name once", group.name));
    groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<JobCollective> read_collectives(const JobFields& file, const std::vector<JobGroup>& groups) {
  std::vector<JobCollective> collectives;
  for (const JobFields& fields : file.objects("collectives", {"name", "group", "input_bytes", "cost_ns", "ops"})) {
    JobCollective collective{.name = fields.text("name"), .cost = Nanos{fields.whole("cost_ns")}};
    const std::string name = fields.text("group");
    const auto group =
        std::find_if(groups.begin(), groups.end(), [&](const JobGroup& known) { return known.name == name; });
    if (group == groups.end()) fields.refuse("group", fmt::format("'{}'; expected a name of the groups", name));
    collective.group = static_cast<std::size_t>(group - groups.begin());
    if (fields.has("input_bytes")) collective.input = Bytes{fields.whole("input_bytes")};
    for (const std::size_t op : fields.indices("ops", kMostOps)) collective.ops.emplace_back(op);
    if (collective.ops.size() != group->ranks.size())
      fields.refuse("ops", fmt::format("{} ops; expected {}, one for each rank of group '{}'", collective.ops.size(),
                                       group->ranks.size(), name));
    collectives.push_back(std::move(collective));
  }
  return collectives;
}

/// Refuses a job that names ops which are no collectives in the trace, or one op in two collectives.
void check_ops(const LoadedJob& loaded, const std::string& path) {
  std::vector<std::vector<bool>> taken;
  for (const Trace& trace : loaded.traces) taken.emplace_back(trace.ops().size(), false);
  for (std::size_t i = 0; i < loaded.job.collectives.size(); ++i) {
    const JobCollective& collective = loaded.job.collectives[i];
    const std::vector<std::size_t>& ranks = loaded.job.groups[collective.group].ranks;
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      const std::size_t op = collective.ops[k].index(), rank = ranks[k];
      const std::string where = fmt::format("{}: collectives[{}].ops[{}]: {}", path, i, k, op);
      if (op >= taken[rank].size())
        refuse("{}; expected an op of rank {}, which has {}", where, rank, taken[rank].size());
      if (loaded.traces[rank].op(collective.ops[k]).kind != OpKind::kCollective)
        refuse("{}; expected a collective of rank {}, this op is '{}'", where, rank,
               loaded.traces[rank].text(loaded.traces[rank].op(collective.ops[k]).name));
      if (taken[rank][op]) refuse("{}; expected an op that is in no other collective", where);
      taken[rank][op] = true;
    }
  }
}

}  // namespace

bool is_job_file(const Input& head) { return begins_job_file(head.bytes().substr(0, kSniffBytes)); }

bool is_job_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file{path, std::ios::binary};
  std::string head(kSniffBytes, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return is_job_file(Input{path, head});
}

Job parse_job(const Input& input) {
  const JobFields::Json json = parse_json(input);
  const JobFields file{
      json, input.path(), "", {std::string{kVersionKey}, "ranks", "groups", "collectives", "clock_residual_ns"}};
  if (const std::int64_t version = file.whole(std::string{kVersionKey}); version != kVersion)
    file.refuse(std::string{kVersionKey}, fmt::format("{}; expected {}", version, kVersion));
  Job job;
  for (const JobFields& fields : file.objects("ranks", {"trace", "trace_hash", "start_ns"}))
    job.ranks.push_back({fields.text("trace"), fields.text("trace_hash"), Nanos{fields.whole("start_ns")}});
  if (job.ranks.empty()) file.refuse("ranks", "[]; expected at least one rank");
  job.groups = read_groups(file, job.ranks.size());
  job.collectives = read_collectives(file, job.groups);
  job.clock_residual = Nanos{file.whole("clock_residual_ns")};
  return job;
}

std::string job_file(const Job& job) {
  using Json = nlohmann::ordered_json;
  Json ranks = Json::array(), groups = Json::array(), collectives = Json::array();
  for (const JobRank& rank : job.ranks)
    ranks.push_back({{"trace", rank.trace}, {"trace_hash", rank.hash}, {"start_ns", rank.start.count()}});
  for (const JobGroup& group : job.groups) groups.push_back({{"name", group.name}, {"ranks", group.ranks}});
  for (const JobCollective& collective : job.collectives) {
    Json json{{"name", collective.name}, {"group", job.groups[collective.group].name}};
    if (collective.input) json["input_bytes"] = collective.input->count();
    json["cost_ns"] = collective.cost.count();
    for (const OpId op : collective.ops) json["ops"].push_back(op.index());
    collectives.push_back(std::move(json));
  }
  const Json json{{std::string{kVersionKey}, kVersion},
                  {"clock_residual_ns", job.clock_residual.count()},
                  {"ranks", ranks},
                  {"groups", groups},
                  {"collectives", collectives}};
  try {
    return json.dump(1) + "\n";
  } catch (const Json::type_error&) {
    refuse("{}: a name that is no UTF-8; expected one that JSON can hold", job.ranks.front().trace);
  }
}

LoadedJob load_job(const std::string& path) {
  LoadedJob loaded{.job = parse_job(read_input(path)), .traces = {}};
  for (std::size_t i = 0; i < loaded.job.ranks.size(); ++i) {
    const JobRank& rank = loaded.job.ranks[i];
    const std::filesystem::path trace = std::filesystem::path{path}.parent_path() / rank.trace;
    try {
      loaded.traces.push_back(load_trace(trace.string()));
    } catch (const InputError& error) {
      throw error.at(fmt::format("{}: ranks[{}].trace", path, i));
    }
    if (loaded.traces.back().hash() != rank.hash)
      refuse("{}: ranks[{}].trace_hash: {}; expected {}, the hash of {}", path, i, rank.hash,
             loaded.traces.back().hash(), trace.string());
  }
  check_ops(loaded, path);
  return loaded;
}

}  // namespace tidepool
