#include "traces/import/torch_et_profile.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "traces/base/refuse.hpp"
#include "traces/import/kineto_contexts.hpp"

namespace tidepool {
namespace {

using NodesByNumber = std::unordered_map<std::int64_t, std::size_t>;  // by the profile's number of the call

class Numbers {
 public:
  Numbers(const ExecutionTrace& file, const Kineto& profile) : file_{file}, profile_{profile} {
    for (const KinetoRange& range : profile_.ranges)
      if (range.kind == KinetoRangeKind::kOperator) operators_.push_back(&range);
  }

  NodesByNumber find() const {
    NodesByNumber nodes;
    for (std::size_t i = 0; i < file_.nodes.size(); ++i)
      if (file_.nodes[i].record_function > 0) nodes.try_emplace(file_.nodes[i].record_function, i);
    std::size_t same = 0;
    for (const KinetoRange* range : operators_) {
      const auto found = nodes.find(range->record_function);
      same += found != nodes.end() && profile_.texts[range->name] == name(found->second);
    }
    if (same > 0 && 2 * same >= operators_.size()) return nodes;
    if (const NodesByNumber by_order = find_by_order(); !by_order.empty()) return by_order;
    refuse(
        "{} of {} operators of the profile have a number and a name of the execution trace; expected a profile of "
        "the same run",
        same, operators_.size());
  }

 private:
  std::string_view name(std::size_t node) const { return file_.texts[file_.nodes[node].name]; }

  /// The nodes by the order of calls on each thread. Empty if the calls of some thread of the profile are not those of
  /// exactly one thread of the execution trace, or if the profile gives a call no number or the number of another call.
  NodesByNumber find_by_order() const {
    std::map<std::int64_t, std::vector<const KinetoRange*>> recorded;
    std::set<std::string_view> names;
    for (const KinetoRange* range : operators_) {
      recorded[range->thread].push_back(range);
      names.insert(profile_.texts[range->name]);
    }
    std::map<std::int64_t, std::vector<std::size_t>> traced;
    for (std::size_t i = 0; i < file_.nodes.size(); ++i)
      if (names.contains(name(i))) traced[file_.nodes[i].thread].push_back(i);
    for (auto& [thread, nodes] : traced)
      std::stable_sort(nodes.begin(), nodes.end(), [&](std::size_t a, std::size_t b) {
        return file_.nodes[a].record_function < file_.nodes[b].record_function;
      });
    std::map<std::vector<std::string_view>, std::vector<std::int64_t>> threads;  // by the names of their calls
    for (const auto& [thread, nodes] : traced) {
      std::vector<std::string_view> calls;
      for (const std::size_t node : nodes) calls.push_back(name(node));
      threads[calls].push_back(thread);
    }
    NodesByNumber out;
    for (auto& [thread, ranges] : recorded) {
      std::stable_sort(ranges.begin(), ranges.end(), [](const KinetoRange* a, const KinetoRange* b) {
        return std::tie(a->record_function, a->begin) < std::tie(b->record_function, b->begin);
      });
      std::vector<std::string_view> calls;
      for (const KinetoRange* range : ranges) calls.push_back(profile_.texts[range->name]);
      const auto found = threads.find(calls);
      if (found == threads.end() || found->second.size() > 1) return {};
      const std::vector<std::size_t>& nodes = traced.at(found->second.front());
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        const std::int64_t number = ranges[i]->record_function;
        if (number <= 0 || !out.try_emplace(number, nodes[i]).second) return {};
      }
    }
    return out;
  }

  const ExecutionTrace& file_;
  const Kineto& profile_;
  std::vector<const KinetoRange*> operators_;
};

}  // namespace

std::vector<std::size_t> nodes_of_activities(const ExecutionTrace& file, const EtProgram& program,
                                             const Kineto& profile) {
  const NodesByNumber nodes = Numbers{file, profile}.find();
  std::unordered_map<std::int64_t, const KinetoLaunch*> launches;
  for (const KinetoLaunch& launch : profile.launches) launches.try_emplace(launch.correlation, &launch);
  std::vector<KinetoMoment> moments;
  for (const KinetoActivity& activity : profile.activities) {
    const auto found = launches.find(activity.correlation);
    moments.push_back(found == launches.end() ? KinetoMoment{}
                                              : KinetoMoment{found->second->thread, found->second->time});
  }
  std::vector<std::size_t> out;
  for (const KinetoContext& context : find_contexts(profile, moments)) {
    const auto found = nodes.find(context.record_function);
    std::size_t node = found == nodes.end() ? EtProgram::kNone : found->second;
    while (node != EtProgram::kNone && !program.runs[node]) node = program.parents[node];
    out.push_back(node);
  }
  return out;
}

KinetoOperands find_operands(const ExecutionTrace& file, const Kineto& profile) {
  const EtProgram program = find_program(file, {});
  KinetoOperands out;
  for (const EtProgram::Life& life : program.lives)
    out.lives.push_back({life.device, life.bytes, life.born_before, life.born_before && life.last == EtProgram::kNone});
  std::unordered_map<std::size_t, std::size_t> calls;  // by node
  for (std::size_t i = 0; i < program.calls.size(); ++i) {
    calls.emplace(program.calls[i].node, i);
    std::vector<KinetoOperands::Use>& uses = out.uses.emplace_back();
    for (const EtProgram::Use& use : program.calls[i].uses) {
      // A buffer that is written in part keeps the rest of its content.
      const bool part = use.access == Access::kWrite && use.bytes < program.lives[use.life].bytes;
      uses.push_back({use.life, part ? Access::kReadWrite : use.access, use.evidence});
    }
  }
  for (const std::size_t node : nodes_of_activities(file, program, profile))
    out.calls.push_back(node == EtProgram::kNone ? KinetoOperands::kNone : calls.at(node));
  return out;
}

}  // namespace tidepool
